"""The `lookalike` command: arguments in, one call, words out. Every failure ends as one line that says what to do."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import grpc
import typer
from rich.console import Console
from rich.table import Table

from pipelines import connection as connections
from pipelines import demo as demonstration
from pipelines import deploy as deployment
from pipelines import display, ingest, local, models, pictures, results, specs
from pipelines import status as standing
from pipelines.connection import Connection, Target
from pipelines.errors import LookalikeError, explain
from pipelines.jobs import Job
from pipelines.repository import Repository
from stages.names import escape_component

app = typer.Typer(
    name="lookalike",
    help="Image-similarity search as a Pachyderm pipeline, on this machine or on a cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
model_app = typer.Typer(help="The backbone that makes the embeddings.", no_args_is_help=True)
app.add_typer(model_app, name="model")
console = Console()

RootOption = Annotated[
    Path | None,
    typer.Option("--root", help="Where the local server keeps its state [default: $LOOKALIKE_ROOT or .lookalike]."),
]
SheetsOption = Annotated[Path, typer.Option("--output", "-o", help="Where result sheets are written.")]
WaitOption = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until every job that this starts has ended.")]


@app.command()
def up(
    root: RootOption = None,
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 30650,
    gpus: Annotated[str, typer.Option(help="How many GPUs the pipelines may use: auto or a number.")] = "auto",
    strict_gpus: Annotated[
        bool, typer.Option(help="Let GPU pipelines wait where there is no GPU, as on a cluster.")
    ] = False,
) -> None:
    """Start localpachd in the background and point pachctl and lookalike at it."""
    options = ["--gpus", gpus, *(["--strict-gpus"] if strict_gpus else [])]
    server, fresh = local.up(root or local.default_root(), port, options)
    say(f"localpachd {'is running' if fresh else 'was running already'} at {server.address} (process {server.pid})")
    say(f"its state is in {server.root}; pachctl's active context is now {local.CONTEXT}")
    _warn_of_address(server)


@app.command()
def down(root: RootOption = None) -> None:
    """Stop the local server. Its repos and results stay on disk."""
    where = root or local.default_root()
    server = local.down(where)
    say("localpachd has stopped" if server else f"no localpachd runs on {where}")


@app.command()
def deploy(
    directory: Annotated[Path, typer.Option("--specs", help="The directory of specifications.")] = specs.HERE,
) -> None:
    """Create or update repos and pipelines from the specifications; safe to repeat."""
    connection = connect()
    deployment.deploy(connection, specs.load(directory), lambda each: say(f"{each.kind} {each.name}: {each.action}"))
    _say_notes(connection)


@app.command()
def add(
    paths: Annotated[list[Path], typer.Argument(help="Pictures, directories, archives or STL-10 files.")],
    wait: WaitOption = True,
) -> None:
    """Put pictures into the library; those of the same name are replaced."""
    connection = connect()
    sources = pictures.find(paths)
    with display.counting(console, "putting pictures", len(sources)) as report:
        written = ingest.Library(connection).add(sources, report)
    say(f"put {written.files} files into images as commit {written.commit}")
    _settle(connection, written.commit, wait)


@app.command()
def remove(
    names: Annotated[
        list[str], typer.Argument(help="True names of pictures in the library, as result sheets show them.")
    ],
    wait: WaitOption = True,
) -> None:
    """Take pictures out of the library."""
    connection = connect()
    written = ingest.Library(connection).remove(names)
    say(f"removed {written.files} files from images as commit {written.commit}")
    _settle(connection, written.commit, wait)


@app.command()
def query(
    paths: Annotated[list[Path], typer.Argument(help="Pictures, or directories of them; each is one entry.")],
    output: SheetsOption = Path("results"),
    wait: WaitOption = True,
) -> None:
    """Search the library for look-alikes of pictures and write their result sheets."""
    connection = connect()
    entries, written = ingest.put_queries(connection, paths)
    say(f"put {written.files} files into queries as commit {written.commit}")
    _settle(connection, written.commit, wait)
    if wait:
        _say_sheets(results.export(connection, output, entries))


@app.command("results")
def show_results(
    entries: Annotated[
        list[str] | None, typer.Argument(help="Query entries by their true names; all when none is given.")
    ] = None,
    output: SheetsOption = Path("results"),
    at: Annotated[str, typer.Option(help="A commit id: the sheets as they were then.")] = "",
) -> None:
    """Write result sheets, as they are now or were at an older commit, to a directory."""
    wanted = [escape_component(entry).partition("/")[0] for entry in entries or []]
    sheets = results.export(connect(), output, wanted, at)
    if not sheets:
        say("there are no result sheets yet: put pictures with `lookalike add`, then ask with `lookalike query`")
    _say_sheets(sheets)


@app.command()
def status() -> None:
    """Show every pipeline with its newest job, and the reasons of whatever failed or was rejected."""
    connection = connect()
    found = standing.read(connection, [spec.name for spec in specs.load()])
    table = Table("pipeline", "state", "job", box=None, header_style="bold", pad_edge=False)
    for name in ("processed", "skipped", "failed", "seconds"):
        table.add_column(name, justify="right")
    for each in found.pipelines:
        table.add_row(each.name, each.state, *_job_cells(each.job))
    if found.pipelines:
        console.print(table)
    for name in found.missing:
        say(f"{name}: not deployed; run `lookalike deploy`")
    for each in found.pipelines:
        _say_reasons(each)
    _say_rejections(found.rejected)
    for note in found.notes:
        say(note)


@model_app.command("push")
def push(
    source: Annotated[str, typer.Argument(help="efficientnet-lite0, resnet50, or a .keras file.")],
    image_size: Annotated[
        int | None, typer.Option(help="Side of the pictures in pixels, for a named backbone.")
    ] = None,
    weights: Annotated[Path | None, typer.Option(help="A file to take a named backbone's weights from.")] = None,
    wait: WaitOption = True,
) -> None:
    """Put a backbone into the repo models; a new one recomputes the features and all below."""
    connection = connect()
    pushed = models.push(Repository(connection, models.REPO), source, image_size, weights)
    if not pushed.commit:
        say(f"{pushed.spec.name} is there already: nothing to do")
        return
    say(f"pushed {pushed.spec.name} as commit {pushed.commit}")
    _settle(connection, pushed.commit, wait)


@app.command()
def demo(
    images: Annotated[Path | None, typer.Option(help="A directory of your own for the library.")] = None,
    queries: Annotated[Path | None, typer.Option(help="A picture or directory of your own to search for.")] = None,
    output: SheetsOption = Path("results"),
    root: RootOption = None,
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 30650,
) -> None:
    """From nothing to result sheets on this machine: server, pipelines, backbone, pictures, queries."""
    where = root or local.default_root()
    server, fresh = local.up(where, port, [])
    say(f"localpachd {'started' if fresh else 'was running already'} at {server.address}")
    connection = connections.connect(Target(server.address))
    outcome = demonstration.run(connection, console, images, queries, where / "samples", output)
    _finish(connection, outcome.jobs)
    if outcome.quality:
        table = Table("", "precision@1", "precision@3", box=None, header_style="bold", pad_edge=False)
        for name, (first, three) in outcome.quality.items():
            table.add_row(name, f"{first:.2f}", f"{three:.2f}")
        console.print(table)
    _say_sheets(outcome.sheets)
    say("")
    say("the server goes on running. To go on:")
    for command, meaning in (
        ("add PICTURE…", "put more pictures into the library"),
        ("query PICTURE…", "search for look-alikes"),
        ("status", "see what every pipeline does"),
        ("down", "stop the server; everything stays on disk"),
    ):
        say(f"  {_command()} {command:<16}{meaning}")
    _warn_of_address(server)


def main() -> None:
    """The command's entry point: exits 0; 2 after a wrong command line; 1, after one line on stderr, for the rest."""
    try:
        app()
    except LookalikeError as error:
        _fail(str(error))
    except grpc.RpcError as error:
        _fail(explain(error, os.environ.get("PACHD_ADDRESS") or "the server of pachctl's active context"))
    except OSError as error:
        _fail(f"{error.filename or 'the system'}: {error.strerror or error}")


def connect() -> Connection:
    """A connection to the server that pachctl would use here."""
    return connections.connect(connections.target())


def say(text: str) -> None:
    """One line to the user, with nothing in it taken for markup."""
    console.print(display.plain(text), highlight=False, soft_wrap=True)


def _fail(text: str) -> None:
    Console(stderr=True).print(f"[red]lookalike:[/red] {display.plain(text)}", highlight=False, soft_wrap=True)
    sys.exit(1)


def _settle(connection: Connection, commit: str, wait: bool) -> None:
    if not wait:
        say("its jobs are running: see `lookalike status`")
        return
    _finish(connection, demonstration.wait(connection, console, [commit]))
    _say_notes(connection)


def _finish(connection: Connection, jobs: list[Job]) -> None:
    """The table of what was done; the end, with the reasons, when a job did not succeed."""
    console.print(display.job_table(jobs))
    rejected = standing.rejections(connection)
    if rejected:
        say(f"{len(rejected)} files are rejected: see `lookalike status`")
    failed = [each for each in jobs if each.state != "success"]
    if failed:
        raise LookalikeError(
            f"{', '.join(dict.fromkeys(each.pipeline for each in failed))} did not succeed: "
            "see `lookalike status` for the reasons"
        )


def _job_cells(job: Job | None) -> Iterator[str]:
    if job is None:
        return iter(("none",))
    seconds = "" if job.seconds is None else f"{job.seconds:.1f}"
    return iter((display.coloured(job.state), str(job.processed), str(job.skipped), str(job.failed), seconds))


def _say_reasons(pipeline: standing.PipelineStatus) -> None:
    if pipeline.reason:
        say(f"{pipeline.name}: {pipeline.reason}")
    for datum, reason in pipeline.failures:
        say(f"{pipeline.name}: datum {datum[:12]} failed: {reason}")
    if pipeline.job is not None and pipeline.job.reason and not pipeline.failures:
        say(f"{pipeline.name}: {pipeline.job.reason}")


def _say_rejections(rejected: list[standing.Rejection]) -> None:
    if not rejected:
        return
    say(f"rejected files: {len(rejected)}")
    for each in rejected[:20]:
        say(f"  {each.source}: {each.reason} ({each.stage})")
    if len(rejected) > 20:
        say(f"  and {len(rejected) - 20} more, under /rejected in preprocess and preprocess-queries")


def _say_notes(connection: Connection) -> None:
    for note in standing.notes(connection):
        say(note)


def _say_sheets(sheets: list[results.Sheet]) -> None:
    for sheet in sheets:
        say(f"{sheet.entry}: {sheet.directory / 'index.html'}, {sheet.directory / 'grid.png'}")


def _command() -> str:
    """The command as it can be typed here, whether or not its environment is active."""
    here = Path(sys.argv[0])
    return str(here) if here.parent.name == "bin" else "lookalike"


def _warn_of_address(server: local.Server) -> None:
    named = os.environ.get("PACHD_ADDRESS")
    if named and named != server.address:
        say(f"note: PACHD_ADDRESS is {named}, so lookalike and pachctl talk to that server; unset it for this one")


if __name__ == "__main__":
    main()
