"""Which queries of an entry are shown on its result sheets: chosen by a seed taken from the entry's name.

Search and render both ask here, so that search passes on the thumbnails of exactly those neighbours that render draws.
Knows names and ids only: no files, no pictures, no tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

PAGE_QUERIES = 100
"""The most queries of one entry whose neighbours are drawn."""

GRID_QUERIES = 5
"""How many of the shown queries, from the front, the result grid draws."""


def sheet_queries(entry: str, ids: Iterable[str]) -> list[str]:
    """Chooses the queries of `entry` to draw: at most `PAGE_QUERIES` distinct ids, the grid's `GRID_QUERIES` first.

    The choice is a function of the entry's name and of the set of ids alone: neither the order of `ids` nor Python's
    version or hash seed matters. Adding one query to an entry displaces at most one of the others.
    """
    return sorted(set(ids), key=lambda query: (_ticket(entry, query), query))[:PAGE_QUERIES]


def _ticket(entry: str, query: str) -> bytes:
    """Draws the query's lot. The entry's length goes in first, so that no two (entry, query) pairs are hashed alike."""
    name = entry.encode("utf-8", "surrogateescape")
    return hashlib.sha256(b"%d:%b:%b" % (len(name), name, query.encode("utf-8"))).digest()
