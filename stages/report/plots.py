"""Plots as inline SVG: curves with intervals, histograms, matrices, and bars in the cells of tables.

Values in, markup out: knows no evaluation and no files. Colours come from the page's style sheet, which STYLE extends,
so plots are light or dark as the page is. Each plot has a title and a description for readers who do not see it; the
page should have a table with the same numbers. Coordinates are rounded, so equal values give equal text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stages.report.markup import text

STYLE = """
:root { --second: #a44a00; --first-band: #2456c633; --second-band: #a44a0033; --heat: 36, 86, 198; }
@media (prefers-color-scheme: dark) {
  :root { --second: #ffb454; --first-band: #8fb4ff3d; --second-band: #ffb4543d; --heat: 143, 180, 255; }
}
.plot { display: block; width: 100%; max-width: 640px; height: auto; }
.plot text { font-size: 13px; fill: var(--muted); }
.plot .axis { stroke: var(--muted); stroke-width: 1; fill: none; }
.plot .rule { stroke: var(--edge); stroke-width: 1; }
.plot .line { fill: none; stroke-width: 2.25; stroke-linejoin: round; }
.plot .first { stroke: var(--accent); } .plot .second { stroke: var(--second); stroke-dasharray: 7 4; }
.plot .first-band { fill: var(--first-band); } .plot .second-band { fill: var(--second-band); }
.plot .first-fill { fill: var(--accent); } .plot .second-fill { fill: var(--second); }
.plot .mark { stroke: var(--second); stroke-width: 1.5; stroke-dasharray: 3 3; }
.plot .named { fill: var(--ink); }
.plot .cell { stroke: var(--card); stroke-width: 1; }
.plot .cell-text { font-size: 11px; text-anchor: middle; fill: var(--ink); }
.plot .dark-cell { fill: var(--card); }
.wide { overflow-x: auto; }
.wide .plot { min-width: 560px; max-width: 820px; }
@media (max-width: 640px) { .plot text { font-size: 17px; } .wide .plot text { font-size: 13px; } }
.bar { display: block; width: 100%; min-width: 72px; height: 14px; margin-top: 4px; }
.bar rect { fill: var(--accent); } .bar .ground { fill: var(--tint); }
.bar line { stroke: var(--ink); stroke-width: 1; vector-effect: non-scaling-stroke; }
"""

WIDTH = 480
"""Width of a plot in its own units; the page scales it."""

_LEFT, _RIGHT, _TOP = 46, 12, 26
_BELOW = 42  # for the ticks and the name of the horizontal axis
_CELL = 30
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class PlotAxis:
    """A range of values with its name."""

    name: str
    low: float
    high: float


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
class _Frame:
    """A rectangle of the plot and the ranges of its axes."""

    left: float
    top: float
    width: float
    height: float
    x: PlotAxis
    y: PlotAxis

    def across(self, value: float) -> str:
        return _number(self.left + self.width * _share(value, self.x))

    def down(self, value: float) -> str:
        return _number(self.top + self.height * (1 - _share(value, self.y)))


def curves(title: str, said: str, x: PlotAxis, y: PlotAxis, lines: Sequence[PlotCurve], whole: bool = False) -> str:
    """At most two curves over a common range. said: the plot in words. whole: ticks at whole numbers only."""
    frame = _Frame(_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, 200, x, y)
    parts = [*_grid(frame, whole), *_lines(frame, lines), *_legend([each.name for each in lines])]
    return _svg(title, said, WIDTH, frame.top + frame.height + _BELOW, parts)


def calibration(
    title: str,
    said: str,
    x: PlotAxis,
    curve: PlotCurve,
    columns: Sequence[HistogramColumn],
    names: tuple[str, str],
    mark: float | None = None,
    ideal: PlotCurve | None = None,
) -> str:
    """A curve of shares above a histogram over the same range; names: of the histogram's two parts. mark: a value of x
    to point out. ideal: the curve as it should be."""
    above = _Frame(_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, 170, x, PlotAxis(curve.name, 0, 1))
    most = max((each.lower + each.upper for each in columns), default=0) or 1
    below = _Frame(_LEFT, _TOP + 170 + 34, above.width, 80, x, PlotAxis("pairs", 0, most))
    lines = [curve] if ideal is None else [curve, ideal]
    parts = [*_grid(above, False, bare=True), *_lines(above, lines), *_grid(below, False, few=True)]
    for each in columns:
        parts += _column(below, each)
    if mark is not None and x.low <= mark <= x.high:
        at = above.across(mark)
        ends = (_number(above.top), _number(below.top + below.height))
        parts.append(f'<line class="mark" x1="{at}" x2="{at}" y1="{ends[0]}" y2="{ends[1]}"/>')
    parts += _legend([each.name for each in lines])
    parts += _legend(names, below.top - 9, fills=True)
    return _svg(title, said, WIDTH, below.top + below.height + _BELOW, parts)


def matrix(title: str, said: str, names: Sequence[str], rows: Sequence[Sequence[int]]) -> str:
    """Counts by row and column, both with these names, coloured by their share of the row."""
    longest = max(map(len, names), default=1)
    left = 14 + 8.0 * min(longest, 24)
    cell = max(22.0, min(44.0, (WIDTH - left - _RIGHT) / max(1, len(names))))
    top = 16 + 6.4 * min(longest, 24)
    parts = []
    for at, name in enumerate(names):
        middle = _number(left + (at + 0.5) * cell)
        down = _number(top + (at + 0.5) * cell + 4)
        parts.append(
            f'<text class="named" transform="translate({middle} {_number(top - 6)}) rotate(-52)">{_short(name)}</text>'
        )
        parts.append(f'<text class="named" text-anchor="end" x="{_number(left - 7)}" y="{down}">{_short(name)}</text>')
    for row, counts in enumerate(rows):
        of = sum(counts) or 1
        for column, count in enumerate(counts):
            parts += _cell(left + column * cell, top + row * cell, cell, count, count / of, names[row], names[column])
    end = len(names) * cell
    return _svg(title, said, max(WIDTH, left + end + top * 0.6), top + end + 4, parts)


def bar(value: float, low: float, high: float) -> str:
    """A share from 0 to 1 as a bar for a cell of a table, with its interval. It only repeats the cell's number."""
    at = [_number(100 * min(1.0, max(0.0, each))) for each in (value, low, high)]
    return (
        '<svg class="bar" viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="ground" width="100" height="14"/><rect width="{at[0]}" height="14" opacity="0.75"/>'
        f'<line x1="{at[1]}" x2="{at[2]}" y1="7" y2="7"/></svg>'
    )


def ticks(low: float, high: float, most: int = 6, whole: bool = False) -> list[float]:
    """Round values within a range, at most `most` of them; whole numbers only if wanted."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in _STEPS if power * each >= rough * (1 - 1e-9))
    step = max(1.0, math.ceil(step)) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(step * each, 10) for each in range(first, last + 1)]


def label(value: float) -> str:
    """A value of an axis for people."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


def _grid(frame: _Frame, whole: bool, bare: bool = False, few: bool = False) -> Iterator[str]:
    """The rules and the values of both axes; bare: without those of the horizontal one."""
    right, bottom = _number(frame.left + frame.width), _number(frame.top + frame.height)
    for value in ticks(frame.y.low, frame.y.high, 2 if few else 5):
        at = frame.down(value)
        yield f'<line class="rule" x1="{_number(frame.left)}" x2="{right}" y1="{at}" y2="{at}"/>'
        yield f'<text text-anchor="end" x="{_number(frame.left - 7)}" y="{at}" dy="4">{label(value)}</text>'
    yield f'<path class="axis" d="M{_number(frame.left)} {bottom}H{right}"/>'
    if bare:
        return
    for value in ticks(frame.x.low, frame.x.high, 10 if whole else 6, whole):
        at = frame.across(value)
        yield f'<text text-anchor="middle" x="{at}" y="{_number(frame.top + frame.height + 17)}">{label(value)}</text>'
    middle = _number(frame.left + frame.width / 2)
    name = text(frame.x.name)
    yield f'<text text-anchor="middle" x="{middle}" y="{_number(frame.top + frame.height + 35)}">{name}</text>'


def _lines(frame: _Frame, lines: Sequence[PlotCurve]) -> Iterator[str]:
    for each, kind in zip(lines, ("first", "second"), strict=False):
        if each.band:
            upper = [f"{frame.across(x)} {frame.down(high)}" for x, _, high in each.band]
            lower = [f"{frame.across(x)} {frame.down(low)}" for x, low, _ in reversed(each.band)]
            yield f'<path class="{kind}-band" d="M{"L".join([*upper, *lower])}Z"/>'
    for each, kind in zip(lines, ("first", "second"), strict=False):
        points = [f"{frame.across(x)} {frame.down(y)}" for x, y in each.points]
        if len(points) > 1:
            yield f'<path class="line {kind}" d="M{"L".join(points)}"/>'
        elif points:
            x, y = points[0].split()
            yield f'<circle class="{kind}-fill" cx="{x}" cy="{y}" r="4"/>'


def _legend(names: Iterable[str], down: float = 14.0, fills: bool = False) -> Iterator[str]:
    """A sign and a name for each line or, with `fills`, for each part of a column."""
    across = float(_LEFT)
    for name, kind in zip(names, ("first", "second"), strict=False):
        if fills:
            place = f'x="{_number(across)}" y="{_number(down - 9)}" width="20" height="9"'
            yield f'<rect class="{kind}-fill" opacity="0.8" {place}/>'
        else:
            yield f'<path class="line {kind}" d="M{_number(across)} {_number(down - 4)}h20"/>'
        yield f'<text class="named" x="{_number(across + 26)}" y="{_number(down)}">{text(name)}</text>'
        across += 26 + 9.5 * len(name) + 16


def _column(frame: _Frame, column: HistogramColumn) -> Iterator[str]:
    left, right = float(frame.across(column.low)), float(frame.across(column.high))
    bottom = column.lower
    for low, high, kind in ((0.0, bottom, "first"), (bottom, bottom + column.upper, "second")):
        if high > low:
            top, end = float(frame.down(high)), float(frame.down(low))
            place = f'x="{_number(left + 0.5)}" width="{_number(max(0.6, right - left - 1))}"'
            yield (
                f'<rect class="{kind}-fill" opacity="0.8" {place} y="{_number(top)}" height="{_number(end - top)}"/>'
            )


def _cell(left: float, top: float, side: float, count: int, share: float, of: str, to: str) -> Iterator[str]:
    place = f'x="{_number(left)}" y="{_number(top)}" width="{_number(side)}" height="{_number(side)}"'
    strength = _number(0.06 + 0.94 * share) if count else "0.03"
    told = f"{of} → {to}: {count:,}"
    yield f'<rect class="cell" {place} style="fill:rgba(var(--heat),{strength})"><title>{text(told)}</title></rect>'
    if count:
        middle = f'x="{_number(left + side / 2)}" y="{_number(top + side / 2 + 4)}"'
        dark = " dark-cell" if share > 0.55 else ""
        yield f'<text class="cell-text{dark}" {middle}>{_brief(count)}</text>'


def _svg(title: str, said: str, width: float, height: float, parts: Iterable[str]) -> str:
    return (
        f'<svg class="plot" role="img" viewBox="0 0 {_number(width)} {_number(height)}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{text(title)}</title><desc>{text(said)}</desc>{"".join(parts)}</svg>'
    )


def _share(value: float, axis: PlotAxis) -> float:
    return (value - axis.low) / (axis.high - axis.low) if axis.high > axis.low else 0.5


def _brief(count: int) -> str:
    """At most four characters below a million, which fit into a cell."""
    if count < 1000:
        return f"{count}"
    return f"{count / 1000:.1f}k" if count < 9950 else f"{count / 1000:.0f}k"


def _short(name: str) -> str:
    return text(name if len(name) <= 24 else f"{name[:23]}…")


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
