"""Plots as SVG, written by hand: bars of what was measured. Knows no benchmark."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

from benchmarks.report import Row

_WIDTH, _LABEL, _BAR, _STEP = 760, 190, 420, 22


def bars(rows: Sequence[Row], surroundings: Mapping[str, Any]) -> str:
    """A bar for each row that has a rate, by section, each section on a scale of its own."""
    parts: list[str] = []
    top = 30
    with_rates = [row for row in rows if row.rate is not None and row.seconds is not None]
    for section, members in groupby(with_rates, lambda row: row.section):
        group = list(members)
        most = max(row.rate or 0.0 for row in group) or 1.0
        parts.append(f'<text x="10" y="{top + 14}" font-weight="bold">{escape(section)}</text>')
        top += _STEP
        for row in group:
            rate = row.rate or 0.0
            colour = "#2b6cb0" if row.name == "ours" else "#a0aec0"
            parts.append(f'<text x="{_LABEL - 8}" y="{top + 14}" text-anchor="end">{escape(row.name)}</text>')
            long = _BAR * rate / most
            parts.append(f'<rect x="{_LABEL}" y="{top + 2}" width="{long:.1f}" height="{_STEP - 6}" fill="{colour}"/>')
            parts.append(f'<text x="{_LABEL + long + 6:.1f}" y="{top + 14}">{_short(rate)}/s</text>')
            top += _STEP
        top += 10
    title = f"{surroundings['processor']}, {surroundings['cores']} cores, {surroundings['date']}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{top}" font-family="sans-serif" '
            'font-size="12">',
            f'<rect width="{_WIDTH}" height="{top}" fill="white"/>',
            f'<text x="10" y="18">{escape(title)}</text>',
            *parts,
            "</svg>\n",
        ]
    )


def _short(rate: float) -> str:
    """A rate in few digits: 12.3 G, 456 k."""
    for size, letter in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")):
        if rate >= size:
            return f"{rate / (1e3 if letter == ' k' else size):,.1f}{letter}"
    return f"{rate:,.0f}"
