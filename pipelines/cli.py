"""The `lookalike` command: arguments in, one call, words out. Every failure ends as one line that says what to do."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import grpc
import typer
from rich.markup import escape

from pipelines import connection as connections
from pipelines import demo as demonstration
from pipelines import deploy as deployment
from pipelines import display, ingest, local, models, pictures, progress, results, samples, specs
from pipelines import query as asking
from pipelines import status as standing
from pipelines.connection import Connection, Target
from pipelines.display import console, files, say
from pipelines.errors import LookalikeError, explain
from pipelines.jobs import Job
from pipelines.repository import Repository
from stages.wording import visible

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

_DEBUG = "LOOKALIKE_DEBUG"

RootOption = Annotated[
    Path | None,
    typer.Option("--root", help="Where the local server keeps its state [default: $LOOKALIKE_ROOT or .lookalike]."),
]
PortOption = Annotated[int, typer.Option(help="The local server's port; 0 takes a free one.")]
SheetsOption = Annotated[Path, typer.Option("--output", "-o", help="The directory to write result sheets to.")]
WaitOption = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until every job that this starts has ended.")]


@app.command()
def up(
    root: RootOption = None,
    port: PortOption = 30650,
    gpus: Annotated[str, typer.Option(help="How many GPUs the pipelines may use: auto or a number.")] = "auto",
    strict_gpus: Annotated[
        bool, typer.Option("--strict-gpus", help="Let GPU pipelines wait where there is no GPU, as on a cluster.")
    ] = False,
) -> None:
    """Start localpachd in the background and point pachctl and lookalike at it."""
    options = ["--gpus", gpus, *(["--strict-gpus"] if strict_gpus else [])]
    server, fresh = local.up(root or local.default_root(), port, options)
    _say_server(server, fresh)
    _say_all(local.overridden(server))


@app.command()
def down(root: RootOption = None) -> None:
    """Stop the local server. Its repos and results stay on disk."""
    where = root or local.default_root()
    say(f"localpachd {'has stopped' if local.down(where) else f'is not running on {where}'}")


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
    found = pictures.find(paths)
    _say_left_out(found.left_out)
    with progress.counting("putting pictures", len(found.sources)) as report:
        written = ingest.add(connection, found.sources, report)
    _settle(connection, f"put {files(written.files)} into images", written.commit, wait)


@app.command()
def remove(
    names: Annotated[list[str], typer.Argument(help="Names of pictures in the library, as result sheets show them.")],
    wait: WaitOption = True,
) -> None:
    """Take pictures out of the library."""
    connection = connect()
    written = ingest.remove(connection, names)
    _settle(connection, f"removed {files(written.files)} from images", written.commit, wait)


@app.command()
def query(
    paths: Annotated[list[Path], typer.Argument(help="Pictures, or directories of them; each is one entry.")],
    output: SheetsOption = Path("results"),
    wait: WaitOption = True,
) -> None:
    """Search the library for look-alikes of pictures and write their result sheets."""
    connection = connect()
    with progress.counting("putting queries") as report:
        asked = asking.put(connection, paths, report)
    _say_left_out(asked.left_out)
    _settle(connection, f"put {files(asked.files)} into queries", asked.commit, wait)
    if wait:
        display.show_sheets(results.export(connection, output, asked.entries))


@app.command("results")
def show_results(
    entries: Annotated[list[str] | None, typer.Argument(help="Query entries by name; all when none is given.")] = None,
    output: SheetsOption = Path("results"),
    at: Annotated[str, typer.Option(help="A commit's id: the sheets as they were then.")] = "",
) -> None:
    """Write result sheets, as they are now or were at an older commit, to a directory."""
    sheets = results.export(connect(), output, entries or (), at)
    if not sheets:
        say("there are no result sheets yet: put pictures with `lookalike add`, then ask with `lookalike query`")
    display.show_sheets(sheets)


@app.command()
def status() -> None:
    """Show every pipeline with its newest job, and the reasons of whatever failed or was rejected."""
    connection = connect()
    say(f"{connection.address}, project {connection.project}")
    display.show_status(standing.read(connection, [spec.name for spec in specs.load()]))


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
    with console.status(f"making {escape(visible(source))}"):
        pushed = models.push(Repository(connection, models.REPO), source, image_size, weights)
    if not pushed.commit:
        say(f"{pushed.spec.name} is there already: nothing to do")
        return
    _settle(connection, f"pushed {pushed.spec.name} into models", pushed.commit, wait)


@app.command()
def demo(
    images: Annotated[Path | None, typer.Option(help="A directory of your own for the library.")] = None,
    queries: Annotated[Path | None, typer.Option(help="A picture or directory of your own to search for.")] = None,
    output: SheetsOption = Path("results"),
    root: RootOption = None,
    port: PortOption = 30650,
) -> None:
    """From nothing to result sheets on this machine: server, pipelines, backbone, pictures, queries."""
    where = root or local.default_root()
    server, fresh = local.up(where, port)
    _say_server(server, fresh)
    connection = connections.connect(Target(server.address))
    labelled = images is None and queries is None
    if images is None or queries is None:
        made = samples.write_samples(where / "samples")
        images, queries = images or made.library, queries or made.queries
    outcome = demonstration.run(connection, images, queries)
    _finish(connection, outcome.jobs)
    sheets = results.export(connection, output, outcome.entries)
    if labelled:
        console.print(display.quality_table(demonstration.sample_quality(connection, sheets[0])))
    display.show_sheets(sheets)
    demonstration.say_how_to_go_on(Path(sys.argv[0]))
    _say_all(local.overridden(server))


def main() -> NoReturn:
    """The command's entry point: exits with 0; 2 after a wrong command line; 1, after one line on stderr, for the
    rest."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # TextIO does not promise it
    try:
        app()
    except LookalikeError as error:
        display.complain(str(error))
    except (grpc.RpcError, ConnectionError) as error:
        # The client turns some of gRPC's errors into a ConnectionError.
        cause = error if isinstance(error, grpc.RpcError) else error.__cause__
        address = os.environ.get("PACHD_ADDRESS") or "the address of pachctl's active context"
        display.complain(explain(cause, address) if isinstance(cause, grpc.RpcError) else str(error))
    except OSError as error:
        display.complain(f"{error.filename or 'the system'}: {error.strerror or error}")
    except Exception as error:
        if os.environ.get(_DEBUG):
            raise
        display.complain(
            f"a fault of lookalike's own, please report it ({type(error).__name__}: {error}); {_DEBUG}=1 shows more"
        )
    sys.exit(1)


def connect() -> Connection:
    """A connection to the server that pachctl would use here."""
    return connections.connect(connections.target())


def _say_server(server: local.Server, fresh: bool) -> None:
    say(f"localpachd {'is running' if fresh else 'was running already'} at {server.address} (process {server.pid})")
    say(f"its state is in {server.root}; pachctl's active context is {local.CONTEXT}")


def _settle(connection: Connection, done: str, commit: str, wanted: bool) -> None:
    """Says what was done, and waits for the jobs of its commit if that is wanted."""
    try:
        say(f"{done}: commit {commit}")
        jobs = progress.wait(connection, [commit]) if wanted else []
    except KeyboardInterrupt:
        say("no longer waiting; the jobs go on: see `lookalike status`")
        raise
    if not wanted:
        say("its jobs are running: see `lookalike status`")
        return
    _finish(connection, jobs)
    _say_notes(connection)


def _finish(connection: Connection, jobs: Sequence[Job]) -> None:
    """The table of what was done; the end, with the reasons, when a job did not succeed."""
    rejected = standing.rejections(connection)
    if jobs:
        console.print(display.job_table(jobs, rejected))
    if rejected:
        say(f"{files(len(rejected))} rejected: see `lookalike status`")
    failed = list(dict.fromkeys(each.pipeline for each in jobs if each.state != "success"))
    if failed:
        raise LookalikeError(f"{', '.join(failed)} did not succeed: see `lookalike status` for the reasons")


def _say_notes(connection: Connection) -> None:
    _say_all(standing.notes(connection))


def _say_all(lines: Sequence[str]) -> None:
    for line in lines:
        say(line)


def _say_left_out(found: Sequence[str]) -> None:
    _say_all([f"left out {each}" for each in found])


if __name__ == "__main__":
    main()
