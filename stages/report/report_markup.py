"""The parts that pages of measures share: tables of numbers, shares as text, and the style of both and of plots beside
each other. Knows HTML, but no measure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stages.report import plots
from stages.report.markup import text

STYLE = (
    plots.STYLE
    + """
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 20px; }
.plots > *, .sheet {
  padding: 16px 18px; border: 1px solid var(--edge); border-radius: 14px; background: var(--card);
}
.sheet { margin: 16px 0; }
.sheet + .table, .plots + .table { margin-top: 16px; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td small { color: var(--muted); }
p { max-width: 75ch; }
p.said { margin: 8px 0 0; color: var(--muted); font-size: 0.875rem; }
.table th, .table td { padding: 7px 14px; overflow-wrap: break-word; }
caption { padding: 10px 14px 2px; text-align: left; color: var(--muted); font-size: 0.875rem; }
"""
)


def table(
    id: str, caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int]
) -> Iterator[str]:
    """A table below the heading with that id. caption, header: plain text. rows: HTML, as many cells as the header has.
    numbers: the columns that hold numbers, counted from 0."""
    kinds = [' class="number"' if place in numbers else "" for place in range(len(header))]
    heads = "".join(f'<th scope="col"{kind}>{text(name)}</th>' for name, kind in zip(header, kinds, strict=True))
    yield f'<div class="table" tabindex="0" role="region" aria-labelledby="{id}"><table>'
    if caption:
        yield f"<caption>{text(caption)}</caption>"
    yield f"<thead><tr>{heads}</tr></thead>"
    yield "<tbody>"
    for row in rows:
        yield f"<tr>{''.join(f'<td{kind}>{cell}</td>' for cell, kind in zip(row, kinds, strict=True))}</tr>"
    yield "</tbody></table></div>"


def share(value: float) -> str:
    """A share or a mean of shares, 0 to 1."""
    return f"{value:.3f}"
