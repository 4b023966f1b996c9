"""The commands for a server on this machine (up, down, the demo), and for the work on any: stop."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pipelines.client import server_choice
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.pipeline_owner import own
from pipelines.client.server import local_server
from pipelines.client.server.connection import ServerTarget
from pipelines.commands.kit import display, library_setup
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_server_connection, open_write_connection, open_written_server
from pipelines.commands.kit.job_completion import conclude_all, finish
from pipelines.commands.kit.options import AddressOption, PortOption, RootOption, SheetsOption, WaitOption, path
from pipelines.commands.kit.terminal import console, display_path, files, say, say_all
from pipelines.commands.server import demo
from pipelines.errors import LookalikeError
from pipelines.library import result_sheets

app = App()


class WorkerRunner(StrEnum):
    """How localpachd runs workers."""

    PROCESS = "process"
    DOCKER = "docker"


@app.command(
    examples=(
        "lookalike up",
        "lookalike up --port 0 --runner docker",
        "lookalike up --retention 90 --quota 200G --metrics-port 9650",
    ),
)
def up(
    root: RootOption = None,
    port: PortOption = None,
    gpus: Annotated[
        str, typer.Option(metavar="auto|NUMBER", help="How many GPUs the pipelines may use: auto or a number.")
    ] = "auto",
    strict_gpus: Annotated[
        bool, typer.Option("--strict-gpus", help="Let GPU pipelines wait where there is no GPU, as on a cluster.")
    ] = False,
    runner: Annotated[
        WorkerRunner,
        typer.Option(help="How workers run: as processes of this machine, or in containers of their images (docker)."),
    ] = WorkerRunner.PROCESS,
    retention: Annotated[
        int,
        typer.Option(min=0, metavar="DAYS", help="Squash commits that nothing needs after so many days (0: never)."),
    ] = 0,
    quota: Annotated[str, typer.Option(metavar="SIZE", help="The most bytes to store, such as 50G.")] = "",
    metrics_port: Annotated[
        int | None,
        typer.Option(min=0, metavar="PORT", help="Show metrics for Prometheus on this port (0 takes a free one)."),
    ] = None,
    pass_env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A variable of this environment that workers get (repeatable)."),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(parser=path, metavar="FILE", help="A file with the token that the server asks for.")
    ] = None,
    tls_cert: Annotated[
        Path | None,
        typer.Option(
            parser=path, metavar="FILE", help="The server's certificate for 127.0.0.1, and its issuers' (PEM)."
        ),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(parser=path, metavar="FILE", help="The key of that certificate (PEM).")
    ] = None,
) -> None:
    """Start localpachd in the background and point pachctl at it.

    Its library belongs to this directory: lookalike uses it here and below.
    """
    options = ["--gpus", gpus, "--runner", runner, *(["--strict-gpus"] if strict_gpus else [])]
    options += ["--retention", str(retention)] + [word for name in pass_env or () for word in ("--pass-env", name)]
    given = {"--quota": quota or None, "--metrics-port": metrics_port, "--token-file": token_file}
    given |= {"--tls-cert": tls_cert, "--tls-key": tls_key}
    given = {name: value.absolute() if isinstance(value, Path) else value for name, value in given.items()}
    options += [word for name, value in given.items() if value is not None for word in (name, str(value))]
    access = local_server.AccessFiles(token_file, tls_cert)
    server, fresh = local_server.up(root or local_server.default_root(), port, options, access)
    library_setup.say_server(server, fresh)
    say_all(local_server.overridden(server))


@app.command(
    examples=("lookalike down",),
)
def down(root: RootOption = None) -> None:
    """Stop the local server. Its repos and results stay on disk."""
    where = root or local_server.default_root()
    say(f"localpachd {'has stopped' if local_server.down(where) else f'is not running on {display_path(where)}'}")


@app.command(
    examples=("lookalike stop",),
)
def stop(address: AddressOption = "") -> None:
    """Stop all running and waiting jobs of lookalike's pipelines.

    Pictures and queries stay. The next change of the library or of the queries computes the rest. The jobs of other
    pipelines in the project go on.
    """
    jobs = ProjectJobs(open_write_connection(address))
    ours, running = own(jobs.pipelines()), jobs.unfinished()
    stopped = [job for job in running if job.pipeline in ours and jobs.stop(job, "stopped by `lookalike stop`")]
    say_all(f"stopped {job.pipeline}: job {job.id}" for job in stopped)
    if others := sorted({job.pipeline for job in running} - ours.keys()):
        say(f"not lookalike's, so still running: {', '.join(others)} (`pachctl stop job` stops one)")
    say("the next change of the library or of the queries computes the rest" if stopped else "no job is running")


@app.command(
    "demo",
    examples=(
        "lookalike demo",
        "lookalike demo --images holiday/ --queries mine.jpg",
        "lookalike demo --remove",
    ),
)
def run_demo(
    images: Annotated[
        Path | None,
        typer.Option(parser=path, metavar="DIR", help="Your own pictures for the library, instead of the samples."),
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(parser=path, metavar="PATH", help="Your own pictures to search with.")
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the sample pictures and the sample queries from the library again.")
    ] = False,
    output: SheetsOption = Path("results"),
    root: RootOption = None,
    port: PortOption = None,
    wait: WaitOption = True,
) -> None:
    """From nothing to result sheets on this machine: server, pipelines, backbone, pictures, queries."""
    where = root or local_server.default_root()
    if remove:
        _remove_samples(where, wait)
        return
    server, fresh = local_server.up(where, port)
    library_setup.say_server(server, fresh)
    connection = open_server_connection(ServerTarget(server.address, local=True))
    wanted = demo.demo_pictures(where / "samples", images, queries)
    outcome = demo.run(connection, wanted)
    finish(connection, outcome.jobs, *outcome.put)
    sheets = result_sheets.export(connection, output, outcome.entries)
    if images is None and queries is None:
        console.print(display.quality_table(demo.sample_quality(connection, sheets[0])))
    display.show_sheets(sheets)
    demo.say_next_steps(Path(sys.argv[0]), images is None or queries is None)
    say_all(local_server.overridden(server))
    if outcome.unreadable:
        raise LookalikeError(f"{files(outcome.unreadable)} could not be read: all others were put")


def _remove_samples(root: Path, wait: bool) -> None:
    connection = open_written_server(server_choice.of_library(root))
    done = demo.remove(connection)
    if done:
        conclude_all(connection, done, wait)
    else:
        say("the library has no sample pictures")
