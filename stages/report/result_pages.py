"""The result pages, self-contained HTML files: all queries of an entry with their K nearest and all sources.

Knows the answers' values, but no tables, no files and no Pachyderm. A page links to the files beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

from stages.quality.entry_answers import EntryAnswers
from stages.record.sources import paths
from stages.report import captions, markup, page_links

MOST_QUERIES = 100
"""Queries on one page, at most."""

_MOST_PICTURES = 4 * MOST_QUERIES
"""Pictures on one page: fewer queries if K is large."""


def pages(answers: EntryAnswers) -> Iterator[tuple[str, str]]:
    """The name and the text of each page, for UTF-8 files: the queries whose neighbours have pictures come first, then
    the others, both ordered by their names.

    The first page also reports problems: rejected files with their reasons, an empty or too small library, an entry
    without a picture to search for.
    """
    ordered = sorted(answers.answers, key=lambda each: (not each.pictured, paths(each.sources), each.query))
    most = max(1, min(MOST_QUERIES, _MOST_PICTURES // (answers.k + 1)))
    for page in page_links.divided(ordered, most):
        yield page.file, markup.fill("results.html", answers=answers, page=page, captions=captions, paths=paths)
