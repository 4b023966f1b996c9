"""Plots as SVG, written by hand: curves of growth. Knows no benchmark."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from benchmarks.kit.growth import allowed

_WIDTH, _LABEL = 760, 190
_HEIGHT, _CURVES, _LINE = 320, 520, 13
_GREY = "#718096"
_COLOURS = (
    "#2b6cb0",
    "#c05621",
    "#2f855a",
    "#6b46c1",
    "#b83280",
    "#2c7a7b",
    "#744210",
    "#4a5568",
    "#e53e3e",
    "#1a202c",
)


@dataclass(frozen=True, slots=True)
class Panel:
    """One diagram: the title of its vertical axis, and the values of each line by size. All values are above 0."""

    title: str
    lines: Mapping[str, Mapping[int, float]]


def curves(panels: Sequence[Panel], surroundings: Mapping[str, Any]) -> str:
    """Values against size, both logarithmic, one diagram below the other. The dashed line is n log n, from the first
    value of the first line."""
    parts, top = [], 30
    for panel in panels:
        parts += _diagram(panel, top)
        top += _HEIGHT + 60
    return _drawing(parts, top, surroundings)


def _diagram(panel: Panel, top: int) -> list[str]:
    sizes = sorted({size for line in panel.lines.values() for size in line})
    values = [value for line in panel.lines.values() for value in line.values()]
    first = next(iter(panel.lines.values()))
    guide = {size: first[sizes[0]] * (1 if size == sizes[0] else allowed(sizes[0], size)) for size in sizes}
    across = _Scale(sizes, _LABEL - 120, _CURVES)
    upright = _Scale([*values, *guide.values()], top + _HEIGHT, -_HEIGHT + 24)
    parts = [f'<text x="10" y="{top + 14}" font-weight="bold">{escape(panel.title)}</text>']
    for size in sizes:
        parts.append(f'<text x="{across(size):.1f}" y="{top + _HEIGHT + 18}" text-anchor="middle">{size:,}</text>')
    for power in upright.powers:
        y = upright(10.0**power)
        parts.append(f'<path d="M{_LABEL - 120} {y:.1f}h{_CURVES}" stroke="#e2e8f0"/>')
        parts.append(f'<text x="{_LABEL - 126}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:,g}</text>')
    parts.append(_path(guide, across, upright, _GREY, ' stroke-dasharray="5 4"'))
    parts.append(f'<text x="{_LABEL - 120 + _CURVES + 40}" y="{top + _HEIGHT + 18}" fill="{_GREY}">pictures</text>')
    colours = {name: _COLOURS[number % len(_COLOURS)] for number, name in enumerate(panel.lines)} | {"n log n": _GREY}
    for name, line in panel.lines.items():
        parts.append(_path(line, across, upright, colours[name]))
        parts += [
            f'<circle cx="{across(size):.1f}" cy="{upright(value):.1f}" r="3" fill="{colours[name]}"/>'
            for size, value in line.items()
        ]
    lines = {**panel.lines, "n log n": guide}
    for size in sizes:
        here = {name: upright(line[size]) for name, line in lines.items() if max(line) == size}
        for name, y in apart(here, top + _HEIGHT).items():
            at = f'x="{across(size) + 8:.1f}" y="{y + 4:.1f}"'
            parts.append(f'<text {at} fill="{colours[name]}">{escape(name)}</text>')
    return parts


def apart(places: Mapping[str, float], lowest: float) -> dict[str, float]:
    """The vertical places of texts, in pixels downwards, moved so that none overlaps another one and, if there is room
    for all, none is below `lowest`."""
    names = sorted(places, key=lambda name: (places[name], name))
    found, above = {}, -math.inf
    for name in names:
        found[name] = above = max(places[name], above + _LINE)
    for name in reversed(names):
        found[name] = lowest = min(found[name], lowest)
        lowest -= _LINE
    return found


class _Scale:
    """The position of a value on a logarithmic axis: the least at `start`, the greatest `length` further."""

    def __init__(self, values: Sequence[float], start: float, length: float) -> None:
        self._least, most = math.log10(min(values)), math.log10(max(values))
        self._start, self._each = start, length / ((most - self._least) or 1.0)
        self.powers = range(math.ceil(self._least), math.floor(most) + 1)

    def __call__(self, value: float) -> float:
        return self._start + self._each * (math.log10(value) - self._least)


def _path(line: Mapping[int, float], across: _Scale, upright: _Scale, colour: str, dashes: str = "") -> str:
    points = " ".join(f"{across(size):.1f},{upright(line[size]):.1f}" for size in sorted(line))
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"{dashes}/>'


def _drawing(parts: Sequence[str], height: int, surroundings: Mapping[str, Any]) -> str:
    """The parts below a line that names the machine."""
    title = f"{surroundings['processor']}, {surroundings['cores']} cores, {surroundings['date']}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" font-family="sans-serif" '
            'font-size="12">',
            f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
            f'<text x="10" y="18">{escape(title)}</text>',
            *parts,
            "</svg>\n",
        ]
    )
