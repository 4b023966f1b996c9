"""The names of the pages of one report, and the links between them: the previous and the next one, and those around.

Knows nothing of what the pages are about.
"""

from __future__ import annotations

from collections.abc import Iterator

_AROUND = 2  # pages on both sides of the present one that have links

STYLE = """
nav { display: flex; flex-wrap: wrap; gap: 6px 14px; margin: 18px 0 0; font-size: 0.875rem; }
nav a, header a, footer a, .sources a { color: var(--accent); }
nav [aria-current] { color: var(--ink); font-weight: 600; }
nav [aria-disabled] { color: var(--muted); }
.facts dd a + a { margin-left: 10px; }
.range { margin: 14px 0 0; font-size: 0.9375rem; overflow-wrap: anywhere; }
"""
"""The style of the links, beside that of all pages."""


def name(number: int) -> str:
    """The file of a page, counted from 1."""
    return "index.html" if number == 1 else f"page-{number}.html"


def links(number: int, count: int) -> Iterator[str]:
    """The links of page `number` to the others of `count`; nothing if it is the only one. Their number is bounded."""
    if count == 1:
        return
    yield '<nav aria-label="Pages">'
    yield _to("← Previous", number - 1, count, "prev")
    before = 0
    for page in sorted({1, count, *range(max(1, number - _AROUND), min(count, number + _AROUND) + 1)}):
        if page > before + 1:
            yield "<span>…</span>"
        current = f'<span aria-current="page">{page:,}</span>'
        yield current if page == number else f'<a href="{name(page)}" aria-label="Page {page:,}">{page:,}</a>'
        before = page
    yield _to("Next →", number + 1, count, "next")
    yield "</nav>"


def _to(words: str, page: int, count: int, relation: str) -> str:
    if 1 <= page <= count:
        return f'<a href="{name(page)}" rel="{relation}">{words}</a>'
    return f'<span aria-disabled="true">{words}</span>'
