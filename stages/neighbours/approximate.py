"""Owns approximate search, which is never done unless asked for, and the measurement of what it misses.

The distances it gives are the true ones; only the choice of neighbours is approximate. Knows no files and no pictures.
"""

from collections.abc import Callable

import numpy as np

from stages.neighbours.backend import Backend, Rows
from stages.neighbours.topk import NONE, Searcher, TopK, empty, merge
from stages.neighbours.vectorset import VectorSet

EXTRA = 28
"""Candidates beyond k whose true distances are compared."""

SAMPLE = 200
"""The most queries of one search that are asked exactly as well, to measure the recall."""

_QUERY_BLOCK = 4096


class Approximate:
    """Searches what an approximate backend proposes, and reports the share of the exact neighbours that it found."""

    def __init__(self, library: VectorSet, backend: Backend, exact: Searcher, report: Callable[[str], None]) -> None:
        """exact: over the same library; asked for a sample of every search. report: takes one line of text."""
        self._library = library
        self._backend = backend
        self._exact = exact
        self._report = report

    def search(self, queries: VectorSet, k: int, exclude: Rows | None = None) -> TopK:
        """About the k nearest rows: see `Searcher`. Columns may be empty (NONE) where too few were proposed."""
        queries.must_match(self._library)
        if exclude is None:
            exclude = np.full(len(queries), NONE, dtype=np.int64)
        parts = [
            self._block(queries.part(slice(start, start + _QUERY_BLOCK)), k, exclude[start : start + _QUERY_BLOCK])
            for start in range(0, len(queries), _QUERY_BLOCK)
        ]
        columns = min(k, len(self._library))
        if not parts:
            return empty(0, columns)
        found = TopK(
            np.concatenate([part.distances for part in parts])[:, :columns],
            np.concatenate([part.rows for part in parts])[:, :columns],
        )
        self._measure(found, queries, k, exclude)
        return found

    def _block(self, queries: VectorSet, k: int, exclude: Rows) -> TopK:
        count = min(k + EXTRA + 1, len(self._library))
        _approximate, rows = self._backend.candidates(queries.prepared, count)
        query, column = np.nonzero((rows != NONE) & (rows != exclude[:, None]))
        row = rows[query, column]
        return merge(empty(len(queries), k), query, queries.distances(query, self._library, row), row)

    def _measure(self, found: TopK, queries: VectorSet, k: int, exclude: Rows) -> None:
        sample = np.unique(np.linspace(0, len(queries) - 1, SAMPLE).astype(np.int64))
        true = self._exact.search(queries.part(sample), k, exclude[sample])
        wanted = true.rows != NONE
        hit = (true.rows[:, :, None] == found.rows[sample][:, None, :]).any(axis=2) & wanted
        if wanted.any():
            self._report(
                f"{self._backend.name}: approximate, as asked; recall@{k} {hit.sum() / wanted.sum():.4f} "
                f"against exact search, measured on {len(sample)} of {len(queries)} queries"
            )
