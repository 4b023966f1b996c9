"""Approximate search, used only on request, and its recall, measured here or by the index.

Its distances are the true ones; only the choice of neighbours is approximate. Knows no files and no pictures.
"""

from collections.abc import Callable

import numpy as np

from stages.knn.backend import Backend, Rows
from stages.knn.top_k import NONE, Searcher, TopK, empty, merge
from stages.knn.vector_set import VectorSet

EXTRA = 28
"""Candidates beyond k whose true distances are computed."""

SAMPLE = 200
"""The most queries of one search that are also searched exactly, to measure the recall."""

_QUERY_BLOCK = 4096


def rank_candidates(library: VectorSet, backend: Backend, queries: VectorSet, k: int, exclude: Rows) -> TopK:
    """The k nearest of few queries among the candidates of a backend, by true distances. exclude: see Searcher."""
    count = min(k + EXTRA + 1, len(library))
    _approximate, rows = backend.candidates(queries.prepared, count)
    query, column = np.nonzero((rows != NONE) & (rows != exclude[:, None]))
    row = rows[query, column]
    return merge(empty(len(queries), k), query, queries.distances(query, library, row), row)


class ApproximateSearcher:
    """Searches among the candidates of an approximate backend, and reports the share of exact neighbours that it
    finds."""

    def __init__(
        self,
        library: VectorSet,
        backend: Backend,
        exact: Searcher | None,
        report: Callable[[str], None],
        recall: str = "",
    ) -> None:
        """exact: searches the same library for a sample of each search's queries; None if the recall is known, and then
        a search reads no vectors but those of its candidates. report: takes one line of text. recall: the known one,
        in words."""
        self._library = library
        self._backend = backend
        self._exact = exact
        self._report = report
        self._recall = recall

    def search(self, queries: VectorSet, k: int, exclude: Rows | None = None) -> TopK:
        """Approximately the k nearest rows: see `Searcher`. Columns are NONE where the backend proposed too few."""
        queries.must_match(self._library)
        if exclude is None:
            exclude = np.full(len(queries), NONE, dtype=np.int64)
        parts = [
            rank_candidates(
                self._library,
                self._backend,
                queries.part(slice(start, start + _QUERY_BLOCK)),
                k,
                exclude[start : start + _QUERY_BLOCK],
            )
            for start in range(0, len(queries), _QUERY_BLOCK)
        ]
        columns = min(k, len(self._library))
        if not parts:
            return empty(0, columns)
        found = TopK(
            np.concatenate([part.distances for part in parts])[:, :columns],
            np.concatenate([part.rows for part in parts])[:, :columns],
        )
        if self._exact is None:
            self._report(f"{self._backend.name}: approximate, as asked; {self._recall}")
        else:
            self._measure(self._exact, found, queries, k, exclude)
        return found

    def _measure(self, exact: Searcher, found: TopK, queries: VectorSet, k: int, exclude: Rows) -> None:
        sample = np.unique(np.linspace(0, len(queries) - 1, SAMPLE).astype(np.int64))
        true = exact.search(queries.part(sample), k, exclude[sample])
        wanted = true.rows != NONE
        hit = (true.rows[:, :, None] == found.rows[sample][:, None, :]).any(axis=2) & wanted
        if wanted.any():
            self._report(
                f"{self._backend.name}: approximate, as asked; recall@{k} {hit.sum() / wanted.sum():.4f} "
                f"against exact search, measured on {len(sample)} of {len(queries)} queries"
            )
