"""The choice of the queries that an entry's result sheets show, seeded by the entry's name.

search and render both call this, so search passes on exactly the thumbnails that render draws. Knows names and ids
only: no files, no pictures, no tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

PAGE_QUERIES = 100
"""The page shows at most this many queries of one entry."""

GRID_QUERIES = 5
"""The grid draws this many of them, from the front."""


def sheet_queries(entry: str, ids: Iterable[str]) -> list[str]:
    """The queries of `entry` to show: at most `PAGE_QUERIES` distinct ids, the grid's `GRID_QUERIES` first.

    The choice depends only on the entry's name and the set of ids, and not on the order of `ids` or on Python's version
    or hash seed. A query added to an entry displaces at most one of the others.
    """
    return sorted(set(ids), key=lambda query: (_ticket(entry, query), query))[:PAGE_QUERIES]


def _ticket(entry: str, query: str) -> bytes:
    """The query's lot. Hashes the length of the entry first, so that no two (entry, query) pairs hash alike."""
    name = entry.encode("utf-8", "surrogateescape")
    return hashlib.sha256(b"%d:%b:%b" % (len(name), name, query.encode("utf-8"))).digest()
