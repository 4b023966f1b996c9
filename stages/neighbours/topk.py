"""Owns the answer of a search, and the one order of neighbours: by distance, then by row (rows are sorted by id).

Knows no metric and no backend.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from stages.neighbours.backend import Distances, Rows
from stages.neighbours.vectorset import VectorSet

NONE = -1
"""Stands for a row that is not there: nothing excluded, or fewer neighbours than columns."""


@dataclass(frozen=True)
class TopK:
    """The nearest rows of n queries.

    distances: float32 (n, k), ascending, infinite where there is no neighbour. rows: int64 (n, k), ascending where
    distances are equal, NONE where there is no neighbour (always at the end).
    """

    distances: Distances
    rows: Rows


class Searcher(Protocol):
    """A library that can be searched."""

    def search(self, queries: VectorSet, k: int, exclude: Rows | None = None) -> TopK:
        """The k nearest library rows of each of n queries; fewer columns where the library is smaller.

        exclude: int64 (n,), a library row for each query that is no neighbour of it, or NONE. Raises ValueError for
        queries of another metric or dimension than the library's.
        """
        ...


def empty(count: int, k: int) -> TopK:
    """An answer without neighbours, to be filled by `merge`."""
    return TopK(np.full((count, k), np.inf, dtype=np.float32), np.full((count, k), NONE, dtype=np.int64))


def merge(found: TopK, queries: Rows, distances: Distances, rows: Rows) -> TopK:
    """The k best of an answer and of further pairs: query `queries[i]` is `distances[i]` from `rows[i]`.

    Queries are row numbers of the answer, in any order. A pair may not be among the answer's already.
    """
    count, k = found.rows.shape
    held = found.rows.ravel() != NONE
    query = np.concatenate([np.repeat(np.arange(count), k)[held], queries])
    distance = np.concatenate([found.distances.ravel()[held], distances])
    row = np.concatenate([found.rows.ravel()[held], rows])
    order = np.lexsort((row, distance, query))
    query = query[order]
    # Sorted by query, so a pair's place among its query's is its place less that of the query's first.
    place = np.arange(len(query)) - np.searchsorted(query, query)
    best = place < k
    merged = empty(count, k)
    merged.distances[query[best], place[best]] = distance[order][best]
    merged.rows[query[best], place[best]] = row[order][best]
    return merged
