"""The commands that move a library from one server to another."""

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from pipelines.analysis.measurement import optional_deployment
from pipelines.analysis.measurement.optional_deployment import ANNOTATIONS, MAP
from pipelines.analysis.time_travel import past_library
from pipelines.client import server_choice
from pipelines.client.commit_sets import commit_at
from pipelines.client.deployment.listing_settings import LISTING
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.cluster import library_overview
from pipelines.commands.kit import progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection, open_written_server
from pipelines.commands.kit.library_setup import begin_library, make_searchable
from pipelines.commands.kit.options import AddressOption, WaitOption
from pipelines.commands.kit.terminal import console, display_path, errors, files, say
from pipelines.errors import LookalikeError
from pipelines.library import snapshots
from pipelines.specifications import pipeline_specs, specs_directory
from pipelines.transfer import export_targets, library_export, library_import
from pipelines.transfer.bundle import BundleCommit, PipelineOutput
from pipelines.transfer.bundle_reader import BundleReader
from pipelines.transfer.export_targets import ExportTarget
from pipelines.transfer.library_import import OutputComparison
from stages.datum.contract import load
from stages.datum.text_format import counted

app = App()

_MOST_PATHS = 5
"""Most differing files of a pipeline that are named."""

_STREAM = Path("-")

_OF_INPUTS = {ANNOTATIONS: ANNOTATIONS, MAP: MAP, "vector-index": "vectors"}
"""Opt-in pipelines of what people put into the library, with their groups: an import deploys those that it had."""


@app.command(
    "export",
    examples=(
        "lookalike export library.tar",
        "lookalike export - > library.tar",
        "lookalike export pictures.parquet --vectors",
    ),
)
def export_library(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write, or - for the standard output.", dir_okay=False)
    ],
    vectors: Annotated[
        bool,
        typer.Option(
            "--vectors",
            help="Write the vectors with all that is known of the pictures instead: FILE.parquet, or FILE.npy or "
            "FILE.faiss (a flat index of FAISS) with FILE.jsonl.",
        ),
    ] = False,
    at: Annotated[
        str, typer.Option(metavar="COMMIT", help="With --vectors: of this commit instead of the newest.")
    ] = "",
    address: AddressOption = "",
) -> None:
    """Write the library, queries and backbones with their history, and the hashes of all outputs, as one tar.

    An interrupted export to a file continues, and one to the file of an earlier export fetches only the new part.
    """
    if vectors:
        _export_vectors(file, at, address)
        return
    if at:
        raise typer.BadParameter("a library is exported with all its commits", param_hint="'--at'")
    connection = open_connection(address)
    names = [spec.name for spec in pipeline_specs.upstream_first(pipeline_specs.load(specs_directory.current()))]
    names.insert(names.index("index") if "index" in names else 0, ANNOTATIONS)  # where they are deployed
    names += [each for each in _OF_INPUTS if each != ANNOTATIONS]
    on = errors if file == _STREAM else console
    planned = library_export.plan(connection)
    with _target(file, [each.commit for each in planned]) as target:
        with progress.transferring("exporting", sum(each.commit.bytes for each in planned), on) as done:
            library_export.export(connection, planned, target, done)
        with progress.counting("hashing outputs", len(names), on) as done:
            written = library_export.finish(connection, names, target, done)
    commits = counted(len(planned), "commit", "commits")
    changed = files(sum(len(each.removed) + len(each.put) for each in planned))
    outputs = counted(written, "pipeline", "pipelines")
    to = "the standard output" if file == _STREAM else display_path(file)
    say(f"wrote {commits} with {changed}, and the hashes of the output of {outputs}, to {to}", on)
    if elsewhere := connection.retry(snapshots.at_urls, connection):
        stay = counted(len(elsewhere), "picture stays at its URL", "pictures stay at their URLs")
        say(f"{stay}: the export holds their records, and needs the originals", on)
    if LISTING in connection.retry(ProjectJobs(connection).pipelines):
        say("without the pictures of listed buckets, so outputs will differ until `lookalike listing` runs there", on)


def _export_vectors(file: Path, at: str, address: str) -> None:
    if file.suffix not in export_targets.VECTORS:
        names = ", ".join(f"{file.stem}{each}" for each in export_targets.VECTORS)
        raise typer.BadParameter(f"the ending of the file chooses the format: one of {names}", param_hint="'FILE'")
    connection = open_connection(address)
    index = past_library.source(connection, "index", connection.retry(commit_at, connection, at)) if at else None
    if at and index is None:
        raise LookalikeError(f"the library had no index at {at}: name a later commit, see `lookalike history`")
    exports = load("pipelines.transfer.vector_export")  # it imports numerical packages
    planned = exports.plan(connection, index.commit if index is not None else "")
    with progress.counting("writing vectors", planned.facts.count) as done:
        written = exports.write(planned, file, done)
    shown = ", ".join(str(display_path(each)) for each in written)
    say(f"wrote the vectors of {counted(planned.facts.count, 'picture', 'pictures')} to {shown}")


@app.command(
    "import",
    examples=("lookalike import library.tar", "lookalike import library.tar --address grpc://pachd.example:30650"),
)
def import_library(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The tar that `lookalike export` wrote, or - for the standard input.")
    ],
    wait: WaitOption = True,
    ids: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file for the table of the commits' ids there and here.")
    ] = None,
    address: AddressOption = "",
) -> None:
    """Make the commits of an exported library again on this server, in order, and compare their outputs.

    If there is no library here or above, and no other server is named, one begins here. A library of this machine gets
    the pipelines and the backbone that it lacks, so that its pictures can be searched. An interrupted import continues.
    The exit code is 1 if an output differs.
    """
    began = time.monotonic()
    with _source(file) as reader:
        commits = reader.library()
        if server_choice.is_free(address):
            begin_library()
        server = server_choice.target(address)
        connection = open_written_server(server)
        planned = library_import.plan(connection, reader.name, commits)
        left = sum(each.bytes for each in commits if each.id not in planned.ids[each.repo])
        with progress.transferring("importing", left) as done:
            imported = library_import.replay(connection, reader, commits, planned, done)
    say(f"imported {counted(len(commits), 'commit', 'commits')}")
    if ids is not None:
        ids.write_text(library_import.table(imported))
        say(f"their ids there and here: {display_path(ids)}")
    made = make_searchable(connection) if server.local else {}
    exported = {each.pipeline for each in imported.outputs}
    for group in (of for name, of in _OF_INPUTS.items() if server.local and name in exported):
        optional_deployment.deploy(connection, group, lambda each: say(str(each)))
    if not wait:
        say("nothing was compared: run this again when the jobs have ended")
        return
    progress.wait(connection, [*library_import.computing(connection, imported), *made])
    if pictures := library_overview.pictures(connection):
        say(f"{counted(pictures, 'picture', 'pictures')} imported, searchable after {time.monotonic() - began:,.0f} s")
    _say_comparison(connection, imported.outputs)


@contextlib.contextmanager
def _target(file: Path, commits: Sequence[BundleCommit]) -> Iterator[ExportTarget]:
    if file != _STREAM:
        with export_targets.file(file, commits) as target:
            yield target
        return
    if sys.stdout.isatty():
        raise LookalikeError("an export is not for a terminal: name a file, or pipe it to a program")
    with (
        open(sys.stdout.fileno(), "wb", buffering=0, closefd=False) as out,
        export_targets.stream(out, commits) as target,
    ):
        yield target


@contextlib.contextmanager
def _source(file: Path) -> Iterator[BundleReader]:
    if file == _STREAM:
        if sys.stdin.isatty():
            raise LookalikeError("nothing is piped in: name the file that `lookalike export` wrote")
        with open(sys.stdin.fileno(), "rb", closefd=False) as piped:
            yield BundleReader(piped, "the standard input")
        return
    if file.is_dir():
        raise LookalikeError(f"{file} is a directory: name the file that `lookalike export` wrote")
    with file.open("rb") as opened:
        yield BundleReader(opened, str(file))


def _say_comparison(connection: Connection, outputs: Sequence[PipelineOutput]) -> None:
    compared = list(library_import.compare(connection, outputs))
    for each in compared:
        say(f"{each.pipeline}: {_words(each)}")
    absent = [each.pipeline for each in outputs if each.pipeline not in {one.pipeline for one in compared}]
    if absent:
        say(f"not deployed here: {', '.join(absent)}: run `lookalike deploy`, then this again")
    different = [each.pipeline for each in compared if not each.equal]
    if different:
        raise LookalikeError(
            f"{', '.join(different)} differ from the exported library; GPUs and processors of another"
            " kind may round vectors differently, which changes the bytes of features and everything downstream"
        )


def _words(each: OutputComparison) -> str:
    if each.equal:
        return f"{files(each.files)}, all equal byte for byte"
    parts = [
        f"{files(len(paths))} {what} ({', '.join(paths[:_MOST_PATHS])}{', …' if len(paths) > _MOST_PATHS else ''})"
        for what, paths in (("missing", each.missing), ("here only", each.extra), ("different", each.differing))
        if paths
    ]
    other = "" if each.same_code else "; its command or environment differs from the exported one"
    return f"of {files(each.files)} {', '.join(parts)}{other}"
