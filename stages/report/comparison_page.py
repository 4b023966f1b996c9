"""Two evaluations side by side as one self-contained HTML file: the verdict, measures, labels, example queries.

Takes the values of stages.quality.ranking_comparison; computes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from stages.report import markup, plots
from stages.report.markup import share
from stages.report.plots import PlotAxis, PlotCurve

MOST_LABELS = 30


def page(found: Mapping[str, Any], thumbnails: Mapping[str, bytes]) -> str:
    """The report as text for a UTF-8 file. thumbnails: JPEG files by source, of any of the examples."""
    return markup.fill(
        "comparison.html",
        found=found,
        thumbnails=thumbnails,
        shown=shown,
        chance=chance,
        most_labels=MOST_LABELS,
        rates={kind: _plot(found, kind) for kind in ("precision", "recall") if found["queries"]},
    )


def shown(found: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The rows of the table of measures: what the mean is over, the measure's name, and its values."""
    ks = found["ks"]
    names = [f"precision@{k}" for k in dict.fromkeys((1, *(each for each in (3, 5) if each in ks), ks[-1]))]
    names += [f"recall@{ks[-1]}", f"mAP@{ks[-1]}", f"MRR@{ks[-1]}"]
    yield from (("queries", name, found["micro"][name]) for name in names)
    yield "labels", "precision@1", found["macro"]["precision@1"]


def _plot(found: Mapping[str, Any], kind: str) -> Markup:
    ks = found["ks"]
    lines = []
    for side in "ab":
        rows = found["curves"][side][kind]
        lines.append(PlotCurve(side.upper(), [(row[0], row[1]) for row in rows], [(row[0], *row[2:]) for row in rows]))
    ends = [f"{line.name} {share(line.points[0][1])} at 1, {share(line.points[-1][1])} at {ks[-1]}" for line in lines]
    x, y = PlotAxis("k", ks[0], ks[-1]), PlotAxis(kind, 0, 1)
    return plots.curves(f"{kind}@k", "; ".join(ends), x, y, lines, whole=True)


def chance(first: Mapping[str, Any]) -> str:
    """The result of McNemar's test, in words."""
    if not first["only_a"] + first["only_b"]:
        return "no query is right on one side alone"
    probability = first["chance"]
    share = "less than 0.001" if probability < 0.001 else f"{probability:.3f}"
    return f"as unequal by chance with probability {share}"
