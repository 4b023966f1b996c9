"""The command that lists runs, and compares two of them."""

from typing import Annotated

import typer

from pipelines.analysis.classifiers import experiments, run_comparison
from pipelines.analysis.classifiers.experiments import Experiment
from pipelines.commands.classify import classify_tables
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection
from pipelines.commands.kit.options import AddressOption, JsonOption
from pipelines.commands.kit.terminal import say, say_json

app = App()


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
            say_json({**_compared(found), "a": data(found.a), "b": data(found.b)})
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


def _compared(found: run_comparison.RunComparison) -> dict[str, object]:
    return {
        "parameters": found.parameters,
        "labels": found.labels,
        "pictures": found.pictures,
        "scores": found.scores,
        "gained": found.gained,
        "lost": found.lost,
    }
