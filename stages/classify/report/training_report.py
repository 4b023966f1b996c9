"""The report on all trainings as one self-contained HTML file: the chosen run, all runs, what was left out.

Takes the values of metrics.json and runs.json; computes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from stages.classify.report import training_words
from stages.files.tables.prediction_table import HELD_OUT
from stages.report import markup, plots
from stages.report.markup import share
from stages.report.plots import HistogramColumn, PlotAxis, PlotCurve

MOST_EXAMPLES = 24
"""Most mistakes that are shown with their pictures."""

_MOST_POINTS = 200  # of a learning curve
_MOST_ROWS = 6
_CURVES = ("loss", "validation_loss", "accuracy", "validation_accuracy")


def page(metrics: Mapping[str, Any], runs: Mapping[str, Any], thumbnails: Mapping[str, bytes]) -> str:
    """The report as text for a UTF-8 file. thumbnails: JPEG files of mistakes, by the id of the picture."""
    chosen = next((run for run in runs["runs"] if run["name"] == runs["chosen"]), None)
    sides = [] if chosen is None else _sides(metrics)
    return markup.fill(
        "classifier.html",
        metrics=metrics,
        chosen=chosen,
        good=[run for run in runs["runs"] if not run["failure"]],
        failed=[run for run in runs["runs"] if run["failure"]],
        words=training_words,
        bar=plots.bar,
        matrix=plots.matrix,
        mistakes=[] if chosen is None else metrics["mistakes"][:MOST_EXAMPLES],
        held_out=HELD_OUT,
        thumbnails=thumbnails,
        sides=sides,
        ranges=sorted({each for *_, bins in sides for each in bins}),
        learning={} if chosen is None else _learning(chosen["curves"]),
        epochs=[] if chosen is None else _epochs(chosen["curves"]),
    )


def _sides(metrics: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any], Markup, Mapping[Any, Any]]]:
    """The predictions of the cross-validation and, if there are any, of the held-out pictures: their name and measures,
    their plot, and their bins by range."""
    return [
        (name, found, _reliability(name, found), {(each["from"], each["to"]): each for each in found["bins"]})
        for name, key in (("cross-validation", "cross_validation"), ("held out", "held_out"))
        if (found := metrics[key]) is not None
    ]


def _reliability(name: str, found: Mapping[str, Any]) -> Markup:
    bins = found["bins"]
    points = [(each["probability"], each["accuracy"]) for each in bins]
    band = [(each["probability"], each["low"], each["high"]) for each in bins]
    columns = []
    for each in bins:
        right = round(each["accuracy"] * each["pictures"])
        columns.append(HistogramColumn(each["from"], each["to"], right, each["pictures"] - right))
    said = f"expected calibration error {share(found['ece'])}; below, the numbers of pictures"
    return plots.calibration(
        f"Accuracy by probability, {name}",
        said,
        PlotAxis("probability of the predicted label", 0, 1),
        PlotCurve("share that is right", points, band),
        columns,
        ("right", "wrong"),
        ideal=PlotCurve("as it should be", [(0, 0), (1, 1)]),
    )


def _learning(found: Mapping[str, Sequence[float]]) -> dict[str, Markup]:
    """The learning curves, by their kind."""
    epochs = max(map(len, found.values()), default=0)
    return {kind: _curve(found, kind, epochs) for kind in ("loss", "accuracy") if epochs and found.get(kind)}


def _curve(found: Mapping[str, Sequence[float]], kind: str, epochs: int) -> Markup:
    lines = [
        PlotCurve(name, [(epoch + 1, found[key][epoch]) for epoch in _some(len(found[key]), _MOST_POINTS)])
        for name, key in (("training", kind), ("validation", f"validation_{kind}"))
        if found.get(key)
    ]
    ends = "; ".join(f"{each.name} {share(each.points[0][1])} to {share(each.points[-1][1])}" for each in lines)
    top = 1.0 if kind == "accuracy" else max(value for each in lines for _, value in each.points) or 1.0
    title = f"{kind.capitalize()} by epoch"
    return plots.curves(title, ends, PlotAxis("epoch", 1, epochs), PlotAxis(kind, 0, top), lines, whole=True)


def _epochs(found: Mapping[str, Sequence[float]]) -> list[tuple[int, dict[str, float | None]]]:
    """Some epochs, from 1, with the values of the learning curves by name."""
    epochs = _some(max(map(len, found.values()), default=0), _MOST_ROWS)
    names = [name for name in _CURVES if found.get(name)]
    return [(at + 1, {name: found[name][at] if at < len(found[name]) else None for name in names}) for at in epochs]


def _some(number: int, most: int) -> list[int]:
    """At most `most` of the whole numbers below `number`, evenly spaced, with the first and the last."""
    if number <= most:
        return list(range(number))
    return sorted({round(place * (number - 1) / (most - 1)) for place in range(most)})
