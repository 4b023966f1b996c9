"""Plots as inline SVG: curves with intervals, histograms, matrices, and bars in the cells of tables.

Values in, markup out: knows no evaluation and no files. Colours come from the page's style sheet, so plots are light or
dark as the page is. Each plot has a title and a description for readers who do not see it; the page should have a table
with the same numbers. Coordinates are rounded, so equal values give equal text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from stages.report import markup

_WIDTH = 480  # of a plot in its own units; the page scales it
_LEFT, _RIGHT, _TOP = 46, 12, 26
_BELOW = 42  # for the ticks and the name of the horizontal axis
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class PlotAxis:
    """A range of values with its name."""

    name: str
    low: float
    high: float

    def ticks(self, most: int, whole: bool = False) -> list[float]:
        """Round values within the range, at most `most` of them; whole numbers only if wanted."""
        if not self.high > self.low:
            return [self.low]
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * each for each in _STEPS if power * each >= rough * (1 - 1e-9))
        step = max(1.0, math.ceil(step)) if whole else step
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(step * each, 10) for each in range(first, last + 1)]

    def share(self, value: float) -> float:
        """The place of a value in the range, 0 to 1."""
        return (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5


@dataclass(frozen=True)
class PlotCurve:
    """A line through points (x, y), and around it a band of points (x, lowest, highest), if there is one."""

    name: str
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float, float]] = ()


@dataclass(frozen=True)
class HistogramColumn:
    """A bar of a histogram from one x to another, in two parts, the lower one first."""

    low: float
    high: float
    lower: float
    upper: float


@dataclass(frozen=True)
class PlotFrame:
    """A rectangle of the plot, in its units, and the ranges of its axes."""

    top: float
    height: float
    x: PlotAxis
    y: PlotAxis
    left: float = _LEFT
    width: float = _WIDTH - _LEFT - _RIGHT

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.top + self.height

    def across(self, value: float) -> float:
        """The place of a value of x."""
        return round(self.left + self.width * self.x.share(value), 2)

    def down(self, value: float) -> float:
        """The place of a value of y."""
        return round(self.top + self.height * (1 - self.y.share(value)), 2)


def curves(title: str, said: str, x: PlotAxis, y: PlotAxis, lines: Sequence[PlotCurve], whole: bool = False) -> Markup:
    """At most two curves over a common range. said: the plot in words. whole: ticks at whole numbers only."""
    frame = PlotFrame(_TOP, 200, x, y)
    return _curves(title, said, frame, lines, frame.bottom, whole=whole, below=None, mark=None)


def calibration(
    title: str,
    said: str,
    x: PlotAxis,
    curve: PlotCurve,
    columns: Sequence[HistogramColumn],
    names: tuple[str, str],
    mark: float | None = None,
    ideal: PlotCurve | None = None,
) -> Markup:
    """A curve of shares above a histogram over the same range; names: of the histogram's two parts. mark: a value of x
    to point out. ideal: the curve as it should be."""
    frame = PlotFrame(_TOP, 170, x, PlotAxis(curve.name, 0, 1))
    most = max((each.lower + each.upper for each in columns), default=0) or 1
    below = PlotFrame(frame.bottom + 34, 80, x, PlotAxis("pairs", 0, most))
    at = frame.across(mark) if mark is not None and x.low <= mark <= x.high else None
    lines = [curve] if ideal is None else [curve, ideal]
    parts = _legend(names)
    return _curves(
        title, said, frame, lines, below.bottom, whole=False, below=below, columns=columns, parts=parts, mark=at
    )


def _curves(
    title: str, said: str, frame: PlotFrame, lines: Sequence[PlotCurve], bottom: float, **more: object
) -> Markup:
    size = (_WIDTH, bottom + _BELOW)
    legend = _legend(each.name for each in lines)
    return markup.part(
        "curves.svg", title=title, said=said, size=size, frame=frame, lines=lines, legend=legend, label=label, **more
    )


def matrix(title: str, said: str, counts: Mapping[str, Any]) -> Markup:
    """Counts by row and column, coloured by their share of the row. counts: "labels", the names of both; "rows"; and
    "others", whether one row and column more stand for all other labels."""
    names = [*counts["labels"], *(["all others"] if counts["others"] else [])]
    longest = min(24, max(map(len, names), default=1))
    left, top = 14 + 8.0 * longest, 16 + 6.4 * longest
    cell = max(22.0, min(44.0, (_WIDTH - left - _RIGHT) / max(1, len(names))))
    end = len(names) * cell
    size = (max(_WIDTH, left + end + top * 0.6), top + end + 4)
    place = {"left": left, "top": top, "cell": cell, "brief": _brief}
    return markup.part("matrix.svg", title=title, said=said, size=size, names=names, rows=counts["rows"], **place)


def bar(value: float, low: float, high: float) -> Markup:
    """A share from 0 to 1 as a bar for a cell of a table, with its interval. It only repeats the cell's number."""
    value, low, high = (100 * min(1.0, max(0.0, each)) for each in (value, low, high))
    return markup.part("bar.svg", value=value, low=low, high=high)


def label(value: float) -> str:
    """A value of an axis for people."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


def _legend(names: Iterable[str]) -> list[tuple[float, str]]:
    """Where each name begins, after a sign of its line or of its part of a column."""
    places, across = [], float(_LEFT)
    for name in names:
        places.append((across, name))
        across += 26 + 9.5 * len(name) + 16
    return places


def _brief(count: int) -> str:
    """At most four characters below a million, which fit into a cell."""
    if count < 1000:
        return f"{count}"
    return f"{count / 1000:.1f}k" if count < 9950 else f"{count / 1000:.0f}k"
