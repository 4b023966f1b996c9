"""The commands that move a library from one server to another."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.client.connection import Connection, here
from pipelines.commands import progress
from pipelines.commands.options import WaitOption
from pipelines.commands.terminal import files, near, say
from pipelines.errors import LookalikeError
from pipelines.moving import exporting, importing
from pipelines.moving.bundle import Bundle, Manifest
from pipelines.moving.importing import Comparison
from pipelines.specifications import reading
from stages.wording import counted

app = typer.Typer()

_MOST_PATHS = 5
"""Most differing files of a pipeline that are named."""


@app.command("export")
def export_library(
    directory: Annotated[
        Path, typer.Argument(help="The directory to write to; content of an earlier export is not fetched again.")
    ],
) -> None:
    """Write the library, queries and backbones with their history, and the hashes of all outputs, to a directory."""
    connection = here()
    names = [spec.name for spec in reading.upstream_first(reading.load())]
    with progress.counting("exporting") as done:
        manifest = exporting.export(connection, Bundle(directory), names, done)
    changed = sum(len(each.changes) for each in manifest.commits)
    commits = counted(len(manifest.commits), "commit", "commits")
    outputs = counted(len(manifest.outputs), "pipeline", "pipelines")
    say(f"wrote {commits} with {files(changed)}, and the hashes of the output of {outputs}, to {near(directory)}")


@app.command("import")
def import_library(
    directory: Annotated[
        Path, typer.Argument(exists=True, file_okay=False, help="The directory that `lookalike export` wrote.")
    ],
    wait: WaitOption = True,
) -> None:
    """Make the commits of an exported library again on this server, in order, and compare their outputs.

    An interrupted import continues. The exit code is 1 if an output differs.
    """
    connection = here()
    bundle = Bundle(directory)
    manifest = bundle.read()
    with progress.counting("importing", len(manifest.commits)) as done:
        made = importing.replay(connection, bundle, done)
    known = counted(len(made), "commit is", "commits are")
    say(f"{known} here; their ids there and here: {near(directory / 'ids.tsv')}")
    if not wait:
        say("nothing was compared: run this again when the jobs have ended")
        return
    progress.wait(connection, importing.computing(connection, manifest, made))
    _say_comparison(connection, manifest)


def _say_comparison(connection: Connection, manifest: Manifest) -> None:
    compared = list(importing.compare(connection, manifest))
    for each in compared:
        say(f"{each.pipeline}: {_words(each)}")
    absent = [each.pipeline for each in manifest.outputs if each.pipeline not in {one.pipeline for one in compared}]
    if absent:
        say(f"not deployed here: {', '.join(absent)}; run `lookalike deploy`, then this again")
    different = [each.pipeline for each in compared if not each.equal]
    if different:
        raise LookalikeError(
            f"{', '.join(different)} differ from the exported library; GPUs and processors of another"
            " kind may round vectors differently, which changes the bytes of features and everything downstream"
        )


def _words(each: Comparison) -> str:
    if each.equal:
        return f"{files(each.files)}, all equal byte for byte"
    parts = [
        f"{files(len(paths))} {what} ({', '.join(paths[:_MOST_PATHS])}{', …' if len(paths) > _MOST_PATHS else ''})"
        for what, paths in (("missing", each.missing), ("here only", each.extra), ("different", each.differing))
        if paths
    ]
    other = "" if each.same_code else "; its command or environment differs from the exported one"
    return f"of {files(each.files)} {', '.join(parts)}{other}"
