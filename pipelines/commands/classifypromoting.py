"""The command that brings a classifier into production, if it is good enough."""

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.markup import escape

from pipelines.commands.app import App
from pipelines.commands.connecting import connected_to_write
from pipelines.commands.options import AddressOption, JsonOption
from pipelines.commands.terminal import console, say, say_all, say_json
from pipelines.errors import LookalikeError
from pipelines.explaining.classifying import promoting
from pipelines.explaining.classifying.promoting import Trial
from stages.wording import counted, visible

app = App()


@app.command(
    examples=(
        "lookalike classify promote",
        "lookalike classify promote --if-not-worse",
        "lookalike classify promote linear@3f2a1c",
    ),
)
def promote(
    which: Annotated[
        str,
        typer.Argument(
            metavar="RUN@COMMIT|COMMIT",
            help="A run that select has chosen, or a commit of select [default: the newest choice].",
        ),
    ] = "",
    if_not_worse: Annotated[
        bool,
        typer.Option("--if-not-worse", help="Change nothing, and end with status 1, if it has fewer pictures right."),
    ] = False,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Bring the chosen classifier into production, which the service follows; an older one is the way back.

    Both classifiers are evaluated on the held-out pictures of the newest labels, on this machine: pictures that neither
    was trained on. Then the branch production of the repo select is moved.
    """
    connection = connected_to_write(address)
    wanted = promoting.candidate(connection, which)
    with console.status(escape(visible(f"evaluating {promoting.named(wanted)}"))):
        trial = promoting.measure(connection, wanted)
    kept = if_not_worse and trial.worse
    if not kept and not trial.same:
        promoting.promote(connection, wanted)
    if as_json:
        current = None if trial.current is None else trial.current.commit
        say_json({"candidate": wanted.commit, "current": current, "promoted": not kept, **trial.measured})
    else:
        say_all(_measured(trial))
    if kept:
        raise LookalikeError(f"{promoting.named(wanted)} was not promoted, since it has fewer pictures right")
    if not as_json:
        say(_done(trial))


def _measured(trial: Trial) -> Iterator[str]:
    measured = trial.measured
    pictures = measured["pictures"]
    if not pictures:
        yield "no labelled picture is held out, so nothing was measured"
        return
    yield f"on {counted(pictures, 'held-out picture', 'held-out pictures')} of the newest labels:"
    yield f"  {promoting.named(trial.candidate)}: {_score(measured['candidate'])}"
    if trial.current is None or measured["current"] is None:
        return
    yield f"  in production, {promoting.named(trial.current)}: {_score(measured['current'])}"
    interval = f"95 % interval {measured['low']:+.3f} to {measured['high']:+.3f}"
    yield f"  difference {measured['difference']:+.3f} ({interval}), McNemar's p = {measured['p']:.3g}"


def _done(trial: Trial) -> str:
    name = promoting.named(trial.candidate)
    if trial.same:
        return f"{name} is in production already: nothing to do"
    if trial.current is None:
        return f"promoted {name}, the first in production"
    back = ", an older one" if trial.back else ""
    return f"promoted {name}{back}, in place of {promoting.named(trial.current)}"


def _score(found: dict[str, float]) -> str:
    return (
        f"{found['right']:,.0f} of {found['of']:,.0f} right, {found['accuracy']:.3f} "
        f"({found['low']:.3f} to {found['high']:.3f})"
    )
