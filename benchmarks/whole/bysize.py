"""The figures of all sizes of the whole pipeline side by side, with the exponents of their growth. Measures nothing."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from benchmarks.kit.growth import allowed
from benchmarks.whole import figures
from benchmarks.whole.runs import Size, Whole

_EXACT = "search"
"""The one that may grow faster than n log n: it compares everything with everything."""


def tables(done: Mapping[Size, Whole]) -> str:
    """A table in Markdown for each side of the pictures: a row for each figure, a column for each size, and the
    exponent of the growth from each size to the next, marked where it is steeper than n log n."""
    parts = []
    for side in dict.fromkeys(size.side for size in done):
        of_it = {size.pictures: each for size, each in sorted(done.items()) if size.side == side}
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in _table(side, of_it)))
    return "\n\n".join(parts) + "\n"


def exponent(size: int, before: float, larger: int, after: float) -> float:
    """The e of a growth by n^e."""
    return math.log(after / before) / math.log(larger / size)


def _table(side: int, done: Mapping[int, Whole]) -> list[Sequence[str]]:
    sizes = list(done)
    steps = [f"{size:,} to {larger:,}" for size, larger in pairwise(sizes)]
    rows: list[Sequence[str]] = [(f"pictures of {side} px", *(f"{size:,}" for size in sizes), *steps)]
    rows.append(["---"] * len(rows[0]))
    seconds = {size: figures.times(each) for size, each in done.items()}
    seconds = {size: {**of, "bare passes": figures.bare(done[size]).seconds} for size, of in seconds.items()}
    names = dict.fromkeys(name for of in seconds.values() for name in of)
    for name in names:
        values = {size: of[name] for size, of in seconds.items() if name in of}
        cells = [f"{values[size]:,.2f} s" if size in values else "" for size in sizes]
        rows.append((name, *cells, *(_growth(name, values, *pair) for pair in pairwise(sizes))))
    disk = {size: float(each.kept[0].total) for size, each in done.items()}
    cells = [f"{value / 2**20:,.0f} MiB" for value in disk.values()]
    rows.append(("on disk", *cells, *(_growth("on disk", disk, *pair) for pair in pairwise(sizes))))
    none = [""] * len(steps)
    for name, of in _RATIOS.items():
        rows.append((name, *(of(each) for each in done.values()), *none))
    return rows


def _times(value: float, least: float) -> str:
    return f"{value / least:.2f} ×" if least else ""  # a small sample takes no tick of the clock


_RATIOS: Mapping[str, Callable[[Whole], str]] = {
    "on disk, of the bytes needed": lambda each: f"{each.kept[0].total / each.kept[0].needed.total:.3f} ×",
    "to the sheet, of the bare passes": lambda each: _times(each.fill.seconds, figures.bare(each).seconds),
    "its processor time, of theirs": lambda each: _times(each.fill.usage.processor, figures.bare(each).processor),
    "the server's own part of it": lambda each: f"{each.fill.engine_share:.1%}",
    "peak memory of all processes": lambda each: (
        f"{max(step.usage.peak for step in (each.fill, *each.changes)):,.0f} MiB"
    ),
    "interruptions": lambda each: str(each.fill.interruptions),
}


def _growth(name: str, values: Mapping[int, float], size: int, larger: int) -> str:
    if size not in values or larger not in values:
        return ""
    steeper = values[larger] / values[size] > allowed(size, larger)
    said = f"n^{exponent(size, values[size], larger, values[larger]):.2f}"
    return f"**{said}**" if steeper and not name.startswith(_EXACT) else said
