"""Proves that the nearest of a backend's candidates are the nearest of all rows. Knows no files.

A backend's distance is only a bound. The distances of its k nearest candidates are computed again by
`VectorSet.distances`, which alone counts; so are those of the other candidates that neither the bound nor
`VectorSet.lower_bounds` rules out. A card that computes them to the bit, and proved it (stages.knn.bound_deviation),
gives those of all candidates. Each distance that is computed is also an audit of the bound.
"""

from dataclasses import dataclass

import numpy as np

from stages.knn.backend import Backend, Distances, Floats, Mask, MeasuringBackend, Rows
from stages.knn.blas_threads import others_turn
from stages.knn.bound_deviation import BoundDeviationError
from stages.knn.top_k import NONE, TopK, empty, merge, smallest
from stages.knn.vector_set import UNIT_ROUNDING, VectorSet

_AUDITED = 16
"""Of so many queries one is audited by its last candidate, too, whose true distance nothing else needs."""

_LARGEST = float(np.finfo(np.float32).max) / 8  # of |q|² + |x|²: below it, all parts of the expansion are finite


@dataclass(frozen=True)
class _Pairs:
    """Candidates by query and column, with their true distances."""

    query: Rows
    column: Rows
    distances: Distances


class CandidateProver:
    """A library and the backend that proposes candidates from it."""

    def __init__(self, library: VectorSet, backend: Backend) -> None:
        """library: at least one point; the backend was built from `library.prepared`."""
        self._library = library
        self._backend = backend
        self._furthest = float(library.norm_bounds.max())

    def nearest(self, queries: VectorSet, k: int, exclude: Rows, count: int) -> tuple[TopK, Mask]:
        """The k nearest among the backend's `count` candidates, and the queries for which they are proven to be the
        nearest of all rows. exclude: int64 (n,), for each query a row to leave out, or NONE."""
        approximate, rows, true = self._proposed(queries, count)
        usable = (rows != NONE) & np.isfinite(approximate)
        allowed = usable & (rows != exclude[:, None])
        if true is not None:
            query, column = np.nonzero(usable)
            found, pairs = _merged(true, allowed, rows, k), _Pairs(query, column, true[query, column])
        else:
            near = _nearest(approximate, allowed, k)
            found, pairs = self._compared(empty(len(queries), k), queries, near, rows)
            least = self._least(queries, approximate, found.distances[:, -1])
            doubtful = allowed & ~near & ~(least > found.distances[:, -1:])
            found, _ = self._compared(found, queries, self._in_doubt(queries, doubtful, rows, found), rows)

        worst = found.distances[:, -1]
        if count == len(self._library):
            beyond = np.full(len(queries), True)
        else:
            beyond = self._least(queries, approximate.max(axis=1, keepdims=True), worst)[:, 0] > worst
        self._audit(queries, approximate, rows, pairs, true)
        return found, usable.all(axis=1) & beyond & self._bounded(queries, worst)

    def _proposed(self, queries: VectorSet, count: int) -> tuple[Distances, Rows, Distances | None]:
        """The candidates, with their true distances if the backend measures."""
        if isinstance(self._backend, MeasuringBackend) and queries.metric == "euclidean":
            return self._backend.measured(queries.prepared, count)
        return (*self._backend.candidates(queries.prepared, count), None)

    def _compared(self, found: TopK, queries: VectorSet, chosen: Mask, rows: Rows) -> tuple[TopK, _Pairs]:
        query, column = np.nonzero(chosen)
        row = rows[query, column]
        with others_turn():
            distances = queries.distances(query, self._library, row)
        return merge(found, query, distances, row), _Pairs(query, column, distances)

    def _audit(
        self, queries: VectorSet, approximate: Distances, rows: Rows, near: _Pairs, true: Distances | None
    ) -> None:
        """Raises BoundDeviationError if the backend puts a candidate whose true distance is known, or the last one of
        some queries, further away than its bound allows, or measured that last one wrongly."""
        some = np.arange(0, len(queries), _AUDITED)
        last = np.where(rows[some] != NONE, approximate[some], -np.inf).argmax(axis=1)
        known = rows[some, last] != NONE
        some, last = some[known], last[known]
        with others_turn():
            distances = queries.distances(some, self._library, rows[some, last])
        if true is not None and not np.array_equal(true[some, last], distances):
            raise BoundDeviationError(
                f"{self._backend.name} computed a distance in float64 that is not the true one, as it did before: its "
                "answers cannot be proven. Use BACKEND=numpy or faiss"
            )
        for pairs in (near, _Pairs(some, last, distances)):
            said = approximate[pairs.query, pairs.column].astype(np.float64)
            squares = (
                queries.norm_bounds[pairs.query] ** 2 + self._library.norm_bounds[rows[pairs.query, pairs.column]] ** 2
            )
            wrong = (self._library.at_least(said - self._slack(queries, squares)) > pairs.distances) & (
                squares < _LARGEST
            )
            if wrong.any():
                raise BoundDeviationError(
                    f"{self._backend.name} computed a distance that is larger than the true one, "
                    f"{pairs.distances[wrong][0]:.6g}, by more than float32 arithmetic explains: its answers cannot be "
                    "proven. Use BACKEND=numpy or faiss"
                )

    def _in_doubt(self, queries: VectorSet, doubtful: Mask, rows: Rows, found: TopK) -> Mask:
        """The doubtful candidates that a bound in float32 does not rule out."""
        query, column = np.nonzero(doubtful)
        with others_turn():
            least = queries.lower_bounds(query, self._library, rows[query, column])
        near = ~(least > found.distances[query, -1])
        left = np.zeros_like(doubtful)
        left[query[near], column[near]] = True
        return left

    def _least(self, queries: VectorSet, approximate: Distances, worst: Distances) -> Distances:
        """Lower bounds of the true distances, as `VectorSet.distances` gives them, of rows with these approximate
        ones."""
        squares = queries.norm_bounds**2 + self._relevant(queries, worst) ** 2
        return self._library.at_least(approximate.astype(np.float64) - self._slack(queries, squares)[:, None])

    def _slack(self, queries: VectorSet, squares: Floats) -> Floats:
        """How far approximate squared distances may be above the true ones, for these |q|² + |x|²."""
        rounding = self._backend.rounding
        slack: Floats = rounding.relative * squares + rounding.absolute
        if queries.metric == "cosine":
            slack += UNIT_ROUNDING
        return slack

    def _relevant(self, queries: VectorSet, worst: Distances) -> Floats:
        """The largest norm of any row that is as near as `worst`.

        By the triangle inequality, rows with a norm above |q| + worst are further away, whatever their approximate
        distance: a few huge vectors in a library must not spoil the bound for all the others.
        """
        if queries.metric == "cosine":
            return np.full(len(queries), self._furthest)
        return np.minimum(self._furthest, queries.norm_bounds + worst.astype(np.float64) * (1 + 1e-6) + 1e-44)

    def _bounded(self, queries: VectorSet, worst: Distances) -> Mask:
        """Whether no value that the bound covers can have overflowed float32."""
        bounded: Mask = queries.norm_bounds**2 + self._relevant(queries, worst) ** 2 < _LARGEST
        return bounded


def _merged(true: Distances, allowed: Mask, rows: Rows, k: int) -> TopK:
    """The k nearest allowed candidates of each query, by true distances."""
    distances = np.where(allowed, true, np.float32(np.inf))
    limits = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    query, column = np.nonzero(allowed & (distances <= limits))
    return merge(empty(len(rows), k), query, true[query, column], rows[query, column])


def _nearest(approximate: Distances, allowed: Mask, k: int) -> Mask:
    """The k nearest allowed candidates of each query, or fewer."""
    near = np.zeros(allowed.shape, dtype=bool)
    _, columns = smallest(np.where(allowed, approximate, np.float32(np.inf)), None, k)
    np.put_along_axis(near, columns, True, axis=1)
    near &= allowed
    return near
