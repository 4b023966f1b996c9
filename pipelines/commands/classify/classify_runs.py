"""The commands that list runs, compare two of them, and bring one into production."""

from typing import Annotated

import typer
from rich.markup import escape

from pipelines.analysis.classifiers import experiments, promotion, run_comparison
from pipelines.analysis.classifiers.experiments import Experiment
from pipelines.analysis.classifiers.promotion import PromotionTrial
from pipelines.commands.classify import classify_tables
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection, open_write_connection
from pipelines.commands.kit.options import AddressOption, JsonOption
from pipelines.commands.kit.terminal import console, say, say_all, say_json
from pipelines.errors import LookalikeError
from stages.classify.report import training_words
from stages.datum.text_format import visible

app = App()

FIELDS = ("parameters", "labels", "pictures", "scores", "gained", "lost")
"""Those of a comparison in --json, besides both runs."""


@app.command(
    examples=(
        "lookalike classify runs",
        "lookalike classify runs --all --json",
        "lookalike classify runs --diff linear@3f2a1c mlp",
    ),
)
def runs(
    everything: Annotated[
        bool, typer.Option("--all", help="Also the runs of earlier commits, of other data or parameters.")
    ] = False,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", help="Compare two runs, each named as in the list or by its name alone."),
    ] = None,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """List the runs as a table of experiments, the newest first: parameters, data, accuracies, time and GPU.

    A run is called NAME@COMMIT, after its file of parameters and the commit whose job computed it. The data are the
    commits of labels and images that it was trained on.
    """
    connection = open_connection(address)
    if diff is not None:
        known = experiments.read(connection, everything=True)
        found = run_comparison.compare(connection, *(experiments.named(each, known) for each in diff))
        if as_json:
            compared = {name: getattr(found, name) for name in FIELDS}
            say_json({**compared, "a": data(found.a), "b": data(found.b)})
        else:
            classify_tables.show_differences(found)
        return
    listed = experiments.read(connection, everything)
    if as_json:
        say_json([data(each) for each in listed])
    elif listed:
        classify_tables.show(listed)
    else:
        say("there are no runs yet: lookalike classify train")


def data(each: Experiment) -> dict[str, object]:
    """A run for programs."""
    facts = ("commit", "began", "seconds", "labels", "images", "models", "current", "chosen", "promoted")
    return {"name": each.name, **{fact: getattr(each, fact) for fact in facts}, "run": each.run.as_data()}


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
    """Bring the chosen classifier into production, which the service follows. Promote an older one to go back.

    Both classifiers are evaluated on the held-out pictures of the newest labels, on this machine: pictures that neither
    was trained on. Then the branch production of the repo select is moved.
    """
    connection = open_write_connection(address)
    wanted = promotion.candidate(connection, which)
    with console.status(escape(visible(f"evaluating {promotion.named(wanted)}"))):
        trial = promotion.measure(connection, wanted)
    kept = if_not_worse and (trial.worse or (trial.current is not None and not trial.measured["pictures"]))
    if not kept and not trial.same:
        promotion.promote(connection, wanted)
    if as_json:
        current = None if trial.current is None else trial.current.commit
        say_json({"candidate": wanted.commit, "current": current, "promoted": not kept, **trial.measured})
    else:
        say_all(training_words.promotion_lines(trial.measured))
    if kept:
        reason = "it has fewer pictures right" if trial.worse else "nothing could be measured"
        raise LookalikeError(f"{promotion.named(wanted)} was not promoted, since {reason}")
    if not as_json:
        say(_done(trial))


def _done(trial: PromotionTrial) -> str:
    name = promotion.named(trial.candidate)
    if trial.same:
        return f"{name} is in production already: nothing to do"
    if trial.current is None:
        return f"promoted {name}, the first in production"
    back = ", an older one" if trial.back else ""
    return f"promoted {name}{back}, in place of {promotion.named(trial.current)}"
