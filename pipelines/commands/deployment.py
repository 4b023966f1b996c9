"""The commands for the pipelines themselves: deploying them, and how they stand."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines import deploy as deployment
from pipelines import display, specs
from pipelines import status as standing
from pipelines.connection import here
from pipelines.display import say, say_all

app = typer.Typer()


@app.command()
def deploy(
    directory: Annotated[Path, typer.Option("--specs", help="The directory of specifications.")] = specs.HERE,
) -> None:
    """Create or update repos and pipelines from the specifications; safe to repeat."""
    connection = here()
    deployment.deploy(connection, specs.load(directory), lambda each: say(f"{each.kind} {each.name}: {each.action}"))
    say_all(standing.notes(connection))


@app.command()
def status() -> None:
    """Show every pipeline with its newest job, and the reasons of whatever failed or was rejected."""
    connection = here()
    say(f"{connection.address}, project {connection.project}")
    display.show_status(standing.read(connection, [spec.name for spec in specs.load()]))
