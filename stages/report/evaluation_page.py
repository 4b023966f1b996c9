"""The report of an evaluation as one self-contained HTML file: measures, labels, confusions, calibration, what is left
out.

Takes the values of stages.quality.evaluation; computes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from stages.datum import text_format
from stages.report import evaluation_words, markup, plots
from stages.report.markup import share
from stages.report.plots import HistogramColumn, PlotAxis, PlotCurve


def page(metrics: Mapping[str, Any], calibration: Mapping[str, Any]) -> str:
    """The report as text for a UTF-8 file."""
    measured = metrics["queries"] > 0
    return markup.fill(
        "evaluation.html",
        metrics=metrics,
        calibration=calibration,
        words=evaluation_words,
        bar=plots.bar,
        matrix=plots.matrix,
        rates={kind: _rates(metrics, kind) for kind in ("precision", "recall") if measured},
        calibration_plot=_calibration(calibration) if calibration["pairs"] else None,
    )


def _rates(metrics: Mapping[str, Any], name: str) -> Markup:
    ks = metrics["ks"]
    lines = []
    for mean, said in (("micro", "mean over queries"), ("macro", "mean over labels")):
        values = [(k, metrics[mean][f"{name}@{k}"]) for k in ks]
        points = [(k, each["value"]) for k, each in values]
        lines.append(PlotCurve(said, points, [(k, each["low"], each["high"]) for k, each in values]))
    first, last = lines[0].points[0][1], lines[0].points[-1][1]
    said = f"{name} over queries: {share(first)} at 1, {share(last)} at {ks[-1]}"
    return plots.curves(f"{name}@k", said, PlotAxis("k", ks[0], ks[-1]), PlotAxis(name, 0, 1), lines, whole=True)


def _calibration(calibration: Mapping[str, Any]) -> Markup:
    top = calibration["bins"][-1]["to"] or 1.0
    curve = PlotCurve("probability of the same label", [(x, y) for x, y in calibration["knots"]])
    columns = [
        HistogramColumn(each["from"], each["to"], each["same"], each["pairs"] - each["same"])
        for each in calibration["bins"]
    ]
    near, far = curve.points[0][1], curve.points[-1][1]
    said = f"falls from {share(near)} to {share(far)} at {text_format.distance(top)}; below it the numbers of pairs"
    axis, names = PlotAxis(f"distance ({calibration['facts']['metric']})", 0, top), ("same label", "another label")
    return plots.calibration("Calibration", said, axis, curve, columns, names, calibration["proposed"]["distance"])
