"""The command that evaluates the library's neighbours by labels, and compares two models or metrics by them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from pipelines.analysis.measurement import evaluation, model_comparison, optional_deployment
from pipelines.analysis.measurement.evaluation import EvaluationReport
from pipelines.client.deployment import first_files
from pipelines.client.server.connection import Connection
from pipelines.commands.ask.past_query import STEPS
from pipelines.commands.kit import interrupts, optional_pipelines, progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_write_connection
from pipelines.commands.kit.job_completion import conclude
from pipelines.commands.kit.options import AddressOption, JsonOption, OnceOption, YesOption, output_option, path
from pipelines.commands.kit.terminal import console, display_path, files, plain_table, say, say_all, say_first, say_json
from pipelines.errors import LookalikeError
from stages.datum.text_format import counted, visible
from stages.record.label_files import FOLDERS
from stages.report import evaluation_words

app = App()

_MOST_PROBLEMS = 10
_MOST_LABELS = 5
_MOST_CONFUSIONS = 5


@app.command(
    examples=(
        "lookalike evaluate --labels labels.csv",
        "lookalike evaluate --labels-from-folders --once",
        "lookalike evaluate --json > evaluation.json",
        "lookalike evaluate --model efficientnet-lite2",
        "lookalike evaluate --metric euclidean --metric cosine",
    ),
)
def evaluate(
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            parser=path,
            metavar="FILE",
            help="A CSV file with the columns source, label and, if wanted, name, for the repo labels (repeatable).",
        ),
    ] = None,
    folders: Annotated[
        bool,
        typer.Option("--labels-from-folders", help="Label each picture that no file labels with its folder's name."),
    ] = False,
    output: Annotated[Path, output_option("The directory for the report.")] = Path("results/evaluation"),
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="Compare this model (a name, a .keras file, a commit of models) with the deployed one, or two.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC", help="The same for a metric, euclidean or cosine. With two models, one for each."
        ),
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Delete the pipelines that evaluate. Labels stay.")] = False,
    once: OnceOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Measure how often the nearest pictures have the same label: precision, recall, confusions, calibration.

    The first call creates the pipelines for that, which then follow every change: it says what each later `lookalike
    add` will cost, and asks. A source is a name as result sheets show it.
    """
    given = evaluation.check(labels or ())
    connection = open_write_connection(address)
    if off:
        optional_pipelines.off(connection, evaluation.GROUP)
        return
    optional_deployment.check(connection, evaluation.GROUP)
    for each in given:
        say_first([f"left out {problem}" for problem in each.problems], _MOST_PROBLEMS)
    _put(connection, {each.name: each.content for each in given})
    with optional_pipelines.deployed(connection, evaluation.GROUP, once=once, yes=yes):
        if folders:
            _put(connection, {FOLDERS: evaluation.from_folders(connection)})
        if model or metric:
            _compare(connection, model or (), metric or (), output, as_json)
            return
        found = evaluation.export(connection, output)
    if as_json:
        say_json({"directory": found.directory, "metrics": found.metrics, "calibration": found.calibration})
    elif found.metrics["queries"]:
        show(found)
    if not found.metrics["queries"]:
        raise LookalikeError(found.metrics["note"])


def show(found: EvaluationReport) -> None:
    """Prints a report that has measures."""
    metrics = found.metrics
    say(f"{evaluation_words.summary(metrics)}: {counted(metrics['queries'], 'query', 'queries')}")
    for table in (_measures(metrics), _labels(metrics), _confusions(metrics)):
        if table.rows:
            say("")
            console.print(table)
    say("")
    say_all(_left_out(metrics))
    if metrics["note"]:
        say(metrics["note"])
    say(" ".join(evaluation_words.threshold(found.calibration)))
    if found.calibration["proposed"]["distance"] is not None:
        say(f"to use it: lookalike deploy --set THRESHOLD={found.calibration['proposed']['distance']:g}")
    say(f"report: {display_path(found.directory / evaluation.PAGE)}")


def _put(connection: Connection, content: Mapping[str, bytes]) -> None:
    for name in evaluation.trained_on(connection, content):
        say(f"classifiers are not trained on {name} any more: `lookalike classify add --labels {name}` changes that")
    commit = evaluation.put(connection, content)
    if commit and content:
        conclude(connection, f"put {files(len(content))} into {first_files.LABELS}", commit, True)
    elif commit:
        progress.wait(connection, [commit])


def _measures(metrics: Mapping[str, Any]) -> Table:
    """The measures with their intervals, over queries and over labels."""
    k = metrics["facts"]["k"]
    table = plain_table("with 95 % intervals", numbers=("mean over queries", "mean over labels"))
    for name in _measure_names(k):
        table.add_row(name, *(_estimate(metrics[mean][name]) for mean in ("micro", "macro")))
    return table


def _measure_names(k: int) -> Iterable[str]:
    return dict.fromkeys(("precision@1", f"precision@{k}", f"recall@{k}", f"mAP@{k}", f"MRR@{k}"))


def _labels(metrics: Mapping[str, Any]) -> Table:
    """The labels with the least precision."""
    k, rows = metrics["facts"]["k"], metrics["per_label"]
    names = [*dict.fromkeys(("precision@1", f"precision@{k}", f"mAP@{k}"))]
    table = plain_table("the worst labels" if len(rows) > _MOST_LABELS else "labels", numbers=[*names, "pictures"])
    for row in rows[:_MOST_LABELS]:
        values = [f"{row[name]:.3f}" for name in names]
        table.add_row(escape(visible(row["label"])), *values, f"{row['pictures']:,}")
    return table


def _confusions(metrics: Mapping[str, Any]) -> Table:
    """The labels that are taken for another one most often."""
    k = metrics["facts"]["k"]
    table = plain_table("the most confused", numbers=["nearest", *([f"{k} nearest"] if k > 1 else [])])
    table.add_column("the closest such pair", overflow="fold")
    for each in metrics["confusions"][:_MOST_CONFUSIONS]:
        counts = [f"{each['nearest']:,}", *([f"{each['among']:,}"] if k > 1 else [])]
        example = f"{each['example']['source']}, {each['example']['neighbour']}"
        named = f"{each['label']} for {each['taken_for']}"
        table.add_row(*(escape(visible(cell)) for cell in (named, *counts, example)))
    return table


def _left_out(metrics: Mapping[str, Any]) -> Iterator[str]:
    found = evaluation_words.left_out(metrics)
    if found:
        yield "left out:"
    for reason, count, examples in found:
        yield f"  {reason}: {count:,}{f', such as {examples[0]}' if examples else ''}"


def _estimate(found: Mapping[str, float]) -> str:
    return f"{found['value']:.3f} ({found['low']:.3f} to {found['high']:.3f})"


def _compare(connection: Connection, model: Sequence[str], metric: Sequence[str], to: Path, as_json: bool) -> None:
    """Compares, writes the report below `to`, and shows the table or, as JSON, everything."""
    interrupts.explain("interrupted: nothing was written")
    found = model_comparison.compare(connection, model, metric, to, STEPS)
    if as_json:
        say_json({**found.found, "report": str(found.directory)})
        return
    for line in _comparison(found.found):
        if isinstance(line, Table):
            console.print(line)
        else:
            say(line)
    say(f"report: {found.directory / 'index.html'}")


def _comparison(found: Mapping[str, Any]) -> Iterator[Table | str]:
    """The comparison for the terminal: sides, table, verdict."""
    for side in "ab":
        about = found["about"][side]
        where = "as deployed" if about["deployed"] else "computed here"
        named = f"{visible(about['backbone'])} {about['model'][:12]}, {about['image_size']} px, {about['metric']}"
        yield f"{side.upper()}  {named}; {where}"
    if found["note"]:
        yield found["note"]
        return
    yield ""
    yield _differences(found)
    yield ""
    yield f"{found['verdict']['words']}: {_outcomes(found)}"
    left = found["left_out"]["a"] + found["left_out"]["b"]
    if left:
        yield f"left out: {counted(left, 'query', 'queries')} of one side alone"
    for row in found["labels"][:_MOST_LABELS]:
        yield f"  {visible(row['label'])}: {row['a']:.3f} → {row['b']:.3f} of {row['queries']:,}"


def _differences(found: Mapping[str, Any]) -> Table:
    table = plain_table(collapse_padding=True)
    for name in ("metric", "A", "B", "difference", "95 % interval", ""):
        table.add_column(name, no_wrap=True, justify="left" if name in ("metric", "") else "right")
    for name in _measure_names(found["ks"][-1]):
        values = found["micro"][name]
        better = f"{values['better'].upper()}, beyond chance" if values["better"] else "chance"
        table.add_row(
            name,
            f"{values['a']:.3f}",
            f"{values['b']:.3f}",
            f"{values['difference']:+.3f}",
            f"{values['low']:+.3f} to {values['high']:+.3f}",
            "the same" if values["low"] == values["high"] == 0 else better,
        )
    return table


def _outcomes(found: Mapping[str, Any]) -> str:
    first = found["first"]
    if not first["only_a"] + first["only_b"]:
        return f"of {counted(found['queries'], 'query', 'queries')}, none is right on one side alone"
    chance = "< 0.001" if first["chance"] < 0.001 else f"{first['chance']:.3f}"
    return (
        f"of {counted(found['queries'], 'query', 'queries')}, {first['only_a']:,} right with A alone and "
        f"{first['only_b']:,} with B alone (McNemar: {chance})"
    )
