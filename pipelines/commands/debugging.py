"""The commands for finding out why something went wrong."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.client import debugging
from pipelines.client.connection import here
from pipelines.client.jobs import Jobs
from pipelines.commands.display import console, files, near, say
from pipelines.errors import LookalikeError
from stages.wording import visible

app = typer.Typer()
debug_app = typer.Typer(help="Finding out why something went wrong.", no_args_is_help=True)
app.add_typer(debug_app, name="debug")

_SHORT = 12
"""Digits of a datum's id in the name of its directory."""


@debug_app.command("datum")
def datum(
    job: Annotated[
        str, typer.Argument(metavar="PIPELINE[@JOB]", help="Whose datum; of the newest job if none is named.")
    ],
    identity: Annotated[
        str,
        typer.Argument(
            metavar="[DATUM]", help="The id of the datum, or its beginning [default: the first that failed]."
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A new directory for what there is of it [default: debug/...]."),
    ] = None,
) -> None:
    """Run one datum of a job again, alone, and keep its inputs, variables, output and log (localpachd only).

    No commit changes, and nothing downstream is computed. The exit code is 1 if the datum fails.
    """
    connection = here()
    pipeline, _, named = job.partition("@")
    found, chosen = debugging.choose(Jobs(connection), pipeline, named, identity)
    to = output or _free(Path("debug") / f"{pipeline}-{chosen[:_SHORT]}")
    if to.exists():
        raise LookalikeError(f"{to} is there already: name another directory, or remove it")
    say(f"running datum {chosen} of {pipeline}@{found.id} again")
    rerun = debugging.run(connection, found, chosen, to, _line)
    say(f"its inputs and output are in {near(to)}/pfs, its variables in {near(to)}/env, what it said in {near(to)}/log")
    if rerun.failed:
        before = f"; in its job: {rerun.failed_before}" if rerun.failed_before else "; in its job it went well"
        same = "; so it did in its job" if rerun.failed == rerun.failed_before else before
        raise LookalikeError(f"the datum failed: {rerun.failed}{same}")
    if rerun.failed_before:
        say(f"it went well; in its job it failed: {rerun.failed_before}")
    elif rerun.changed:
        say(f"it went well, but its output differs from what its job recorded in {files(len(rerun.changed))}:")
        for path in rerun.changed:
            say(f"  {path}")
    else:
        say("it went well, and its output is what its job recorded")


def _line(text: str, user: bool) -> None:
    style = None if user else "dim"
    console.print(f"  {visible(text)}", style=style, markup=False, emoji=False, highlight=False, soft_wrap=True)


def _free(wanted: Path) -> Path:
    """The path, or the first like it that is not taken."""
    number, path = 1, wanted
    while path.exists():
        number += 1
        path = wanted.with_name(f"{wanted.name}-{number}")
    return path
