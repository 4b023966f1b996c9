"""The choice of the queries whose neighbours an entry's result sheets show as pictures, seeded by the entry's name.

search and render both call this, so search passes on exactly the thumbnails that render draws. Knows names and ids
only: no files, no pictures, no tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

FEWEST_PICTURED = 100
"""Of at least so many queries of an entry the neighbours are shown as pictures, whatever K is."""

_PICTURED_TILES = 3000
"""Neighbours shown as pictures if K is small: of each of them, search writes the thumbnails of all segments."""

GRID_QUERIES = 5
"""The grid draws this many of them, from the front."""


def most_pictured(k: int) -> int:
    """The largest number of queries of an entry whose `k` neighbours are shown as pictures."""
    return max(FEWEST_PICTURED, _PICTURED_TILES // k)


def sheet_queries(entry: str, ids: Iterable[str], most: int = FEWEST_PICTURED) -> list[str]:
    """The queries of `entry` whose neighbours are shown: at most `most` distinct ids, the grid's `GRID_QUERIES` first.

    The choice depends only on the entry's name and the set of ids, and not on the order of `ids` or on Python's version
    or hash seed. A query added to an entry displaces at most one of the others.
    """
    return sorted(set(ids), key=lambda query: (_ticket(entry, query), query))[:most]


def _ticket(entry: str, query: str) -> bytes:
    """The query's lot. Hashes the length of the entry first, so that no two (entry, query) pairs hash alike."""
    name = entry.encode("utf-8", "surrogateescape")
    return hashlib.sha256(b"%d:%b:%b" % (len(name), name, query.encode("utf-8"))).digest()
