"""Selection of the smallest numbers in each row of a matrix, at little cost beside computing the matrix.

Nothing is sorted: the minima of groups of columns are a few hundred numbers, and the count-th smallest of these is a
limit that at least `count` columns, and hardly any more, do not exceed. Knows no vectors.
"""

import numpy as np

from stages.knn.backend import Distances, Rows
from stages.knn.top_k import NONE

_GROUPS = 8
"""The least number of groups of columns for each wanted number."""

_MULTIPLE = 256
"""Widths are multiples of this, so that they have many divisors."""


def room(width: int) -> int:
    """The width of a matrix for rows of `width` numbers; fill the rest with infinities."""
    return -(-width // _MULTIPLE) * _MULTIPLE


def least(matrix: Distances, count: int) -> tuple[Distances, Rows]:
    """The `count` smallest of each row, in any order, and their columns.

    matrix: float32 (n, w), C order, w given by `room`, without NaN; n small enough for a core's cache.
    Returns float32 (n, c) and int64 (n, c), where c is the smaller of count and w.
    """
    most = matrix.shape[1] // (_GROUPS * count)
    depth = next((depth for depth in range(most, 1, -1) if matrix.shape[1] % depth == 0), 1)
    if depth == 1:
        return smallest(matrix, None, count)
    groups = matrix.shape[1] // depth
    by_group = matrix.reshape(len(matrix), depth, groups)
    minima = by_group.min(axis=1)
    limits = np.partition(minima, count - 1, axis=1)[:, count - 1]
    row, group = np.divmod(np.flatnonzero(minima <= limits[:, None]), groups)
    values = by_group[row, :, group]
    pair, member = np.divmod(np.flatnonzero(values <= limits[row][:, None]), depth)
    row, column = row[pair], member * groups + group[pair]
    held = np.bincount(row, minlength=len(matrix))
    place = np.arange(len(row)) - (np.cumsum(held) - held)[row]
    width = max(count, int(held.max()))
    numbers = np.full((len(matrix), width), np.inf, np.float32)
    columns = np.full((len(matrix), width), NONE, np.int64)
    numbers[row, place], columns[row, place] = values[pair, member], column
    return smallest(numbers, columns, count)


def smallest(numbers: Distances, columns: Rows | None, count: int) -> tuple[Distances, Rows]:
    """The `count` smallest of each row, in any order, and their entries in `columns`, or their positions if it is
    None."""
    if columns is None:
        columns = np.broadcast_to(np.arange(numbers.shape[1]), numbers.shape)
    if numbers.shape[1] <= count:
        return numbers.copy(), columns.copy()
    best = np.argpartition(numbers, count - 1, axis=1)[:, :count]
    return np.take_along_axis(numbers, best, axis=1), np.take_along_axis(columns, best, axis=1)
