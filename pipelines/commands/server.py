"""The commands for a server on this machine: up, down and the demo."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pipelines.client import local
from pipelines.client.connection import Target, connect
from pipelines.commands import demo, display
from pipelines.commands.options import PortOption, RootOption, SheetsOption
from pipelines.commands.terminal import console, say, say_all
from pipelines.commands.waiting import finish
from pipelines.library import results, samples

app = typer.Typer()


class Runner(StrEnum):
    """How localpachd runs workers."""

    PROCESS = "process"
    DOCKER = "docker"


@app.command()
def up(
    root: RootOption = None,
    port: PortOption = 30650,
    gpus: Annotated[str, typer.Option(help="How many GPUs the pipelines may use: auto or a number.")] = "auto",
    strict_gpus: Annotated[
        bool, typer.Option("--strict-gpus", help="Let GPU pipelines wait where there is no GPU, as on a cluster.")
    ] = False,
    runner: Annotated[
        Runner,
        typer.Option(help="How workers run: as processes of this machine, or in containers of their images (docker)."),
    ] = Runner.PROCESS,
) -> None:
    """Start localpachd in the background and point pachctl and lookalike at it."""
    options = ["--gpus", gpus, "--runner", runner, *(["--strict-gpus"] if strict_gpus else [])]
    server, fresh = local.up(root or local.default_root(), port, options)
    _say_server(server, fresh)
    say_all(local.overridden(server))


@app.command()
def down(root: RootOption = None) -> None:
    """Stop the local server. Its repos and results stay on disk."""
    where = root or local.default_root()
    say(f"localpachd {'has stopped' if local.down(where) else f'is not running on {where}'}")


@app.command("demo")
def run_demo(
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
    connection = connect(Target(server.address))
    labelled = images is None and queries is None
    if images is None or queries is None:
        made = samples.write_samples(where / "samples")
        images, queries = images or made.library, queries or made.queries
    outcome = demo.run(connection, images, queries)
    finish(connection, outcome.jobs)
    sheets = results.export(connection, output, outcome.entries)
    if labelled:
        console.print(display.quality_table(demo.sample_quality(connection, sheets[0])))
    display.show_sheets(sheets)
    demo.say_next_steps(Path(sys.argv[0]))
    say_all(local.overridden(server))


def _say_server(server: local.Server, fresh: bool) -> None:
    say(f"localpachd {'is running' if fresh else 'was running already'} at {server.address} (process {server.pid})")
    say(f"its state is in {server.root}; pachctl's active context is {local.CONTEXT}")
