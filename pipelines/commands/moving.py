"""The commands that bring a library from one server to another."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.client.connection import Connection, here
from pipelines.commands import progress
from pipelines.commands.display import files, near, say
from pipelines.commands.options import WaitOption
from pipelines.errors import LookalikeError
from pipelines.moving import exporting, importing
from pipelines.moving.bundle import Bundle, Manifest
from pipelines.moving.importing import Comparison
from pipelines.specifications import reading
from stages.wording import counted

app = typer.Typer()

_MOST_PATHS = 5
"""How many differing files of a pipeline are named."""


@app.command("export")
def export_library(
    directory: Annotated[
        Path, typer.Argument(help="Where to write it; what is there from before is not fetched again.")
    ],
) -> None:
    """Write the library, queries and backbones with their history, and what came of them, to a directory."""
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
    directory: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="What `lookalike export` wrote.")],
    wait: WaitOption = True,
) -> None:
    """Make the commits of an exported library again on this server, in order, and compare what comes of them.

    An import that was broken off goes on. The exit code is 1 if an output differs.
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
            f"{', '.join(different)} did not come out as where the library was exported; GPUs and processors of another"
            " kind may round vectors otherwise, which changes the bytes of features and all below"
        )


def _words(each: Comparison) -> str:
    if each.equal:
        return f"{files(each.files)}, all equal byte for byte"
    parts = [
        f"{files(len(paths))} {what} ({', '.join(paths[:_MOST_PATHS])}{', …' if len(paths) > _MOST_PATHS else ''})"
        for what, paths in (("missing", each.missing), ("here only", each.extra), ("different", each.differing))
        if paths
    ]
    other = "" if each.same_code else "; it runs another command, or in another environment, than there"
    return f"of {files(each.files)} {', '.join(parts)}{other}"
