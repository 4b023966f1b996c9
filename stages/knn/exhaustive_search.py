"""The comparison of queries with every row of a library. Knows no backend.

The float64 expansion |q|² + |x|² - 2 q·x, whose error bound is 2²⁹ times tighter than in float32, rules out most rows;
`VectorSet.distances` compares all the others. The expansion only prunes: it contributes no bit of an answer.
"""

import numpy as np

from stages.knn.backend import DOUBLE, Floats, Rows, gamma
from stages.knn.top_k import TopK, empty, merge
from stages.knn.vector_set import VectorSet

_AT_ONCE = 256
"""Queries compared in one step; no answer depends on it, nor on the next."""

_BLOCK_BYTES = 16 << 20
"""Size of the library's vectors compared in one step, as float64."""


def compare_with_all(queries: VectorSet, library: VectorSet, k: int, exclude: Rows) -> TopK:
    """The k nearest rows of each query, without candidates. exclude: int64 (n,), a row to leave out, or NONE."""
    found = empty(len(queries), k)
    for start in range(0, len(queries), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        part = _compare(queries.part(some), library, k, exclude[some])
        found.distances[some], found.rows[some] = part.distances, part.rows
    return found


def _compare(queries: VectorSet, library: VectorSet, k: int, exclude: Rows) -> TopK:
    found = empty(len(queries), k)
    mine = queries.directions(slice(None))
    lengths = np.einsum("ij,ij->i", mine, mine)
    step = max(1, _BLOCK_BYTES // (8 * library.dimension))
    for start in range(0, len(library), step):
        block = slice(start, min(start + step, len(library)))
        squares = lower_squares(mine, lengths, library.directions(block))
        inside = (exclude >= block.start) & (exclude < block.stop)
        squares[np.flatnonzero(inside), exclude[inside] - block.start] = np.inf
        # The block's own k nearest go first: after them, hardly any others are in doubt.
        likely = np.zeros(squares.shape, dtype=bool)
        nearest = np.argpartition(squares, min(k, squares.shape[1]) - 1, axis=1)[:, :k]
        np.put_along_axis(likely, nearest, True, axis=1)
        likely &= np.isfinite(squares)
        for chosen in (likely, ~likely):
            doubtful = chosen & ~(library.at_least(squares) > found.distances[:, -1:])
            query, column = np.nonzero(doubtful & np.isfinite(squares))
            rows = column + start
            found = merge(found, query, queries.distances(query, library, rows), rows)
    return found


def lower_squares(mine: Floats, lengths: Floats, theirs: Floats) -> Floats:
    """Lower bounds of the squared distances of all pairs, float64 (queries, rows); negative if unknown."""
    sums = lengths[:, None] + np.einsum("ij,ij->i", theirs, theirs)[None, :]
    squares = mine @ theirs.T
    squares *= -2
    squares += sums
    sums *= 2 * gamma(mine.shape[1] + 8, DOUBLE)
    squares -= sums
    return squares
