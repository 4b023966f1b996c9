"""The answer of a search, and the one order of neighbours: by distance, then by row (rows are sorted by id). And the
selection of the smallest numbers in each row of a matrix, at little cost beside computing the matrix.

Nothing is sorted for that: the minima of groups of columns are a few hundred numbers, and the count-th smallest of
these is a limit that at least `count` columns, and hardly any more, do not exceed. Knows no metric and no backend.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from stages.knn.backend import Distances, Rows
from stages.knn.vector_set import VectorSet

NONE = -1
"""The row number for no row: nothing is excluded, or there are fewer neighbours than columns."""

_GROUPS = 8
"""The least number of groups of columns for each wanted number."""

_MULTIPLE = 256
"""Widths are multiples of this, so that they have many divisors."""


@dataclass(frozen=True)
class TopK:
    """The nearest rows of n queries.

    distances: float32 (n, k), ascending. rows: int64 (n, k), ascending among equal distances. Missing neighbours come
    last, as NONE at infinite distance.
    """

    distances: Distances
    rows: Rows


class Searcher(Protocol):
    """Searches one library."""

    def search(self, queries: VectorSet, k: int, exclude: Rows | None = None) -> TopK:
        """The k nearest library rows of each of n queries; fewer columns if the library is smaller.

        exclude: int64 (n,), for each query a library row to leave out, or NONE. Raises ValueError for queries of
        another metric or dimension than the library's.
        """
        ...


def stacked(parts: Iterable[TopK]) -> TopK:
    """The answers to all queries, from those to some of them, at least one part, one after the other."""
    distances, rows = zip(*((each.distances, each.rows) for each in parts), strict=True)
    return TopK(np.concatenate(distances), np.concatenate(rows))


def empty(count: int, k: int) -> TopK:
    """An answer without neighbours, for `merge` to fill."""
    return TopK(np.full((count, k), np.inf, dtype=np.float32), np.full((count, k), NONE, dtype=np.int64))


def merge(found: TopK, queries: Rows, distances: Distances, rows: Rows) -> TopK:
    """The k nearest of an answer and of further pairs: query `queries[i]` is at `distances[i]` from row `rows[i]`.

    Queries are row numbers of the answer, in any order. The answer must not hold any of the pairs already.
    """
    count, k = found.rows.shape
    holding, column = np.nonzero(found.rows != NONE)
    query = np.concatenate([holding, queries])
    distance = np.concatenate([found.distances[holding, column], distances])
    row = np.concatenate([found.rows[holding, column], rows])
    order = _order(query, distance, row)
    query = query[order]
    # Sorted by query: a pair's rank is its position minus that of its query's first pair.
    held = np.bincount(query, minlength=count)
    place = np.arange(len(query)) - (np.cumsum(held) - held)[query]
    best = place < k
    merged = empty(count, k)
    merged.distances[query[best], place[best]] = distance[order][best]
    merged.rows[query[best], place[best]] = row[order][best]
    return merged


def _order(query: Rows, distance: Distances, row: Rows) -> Rows:
    """The order of pairs by query, then by distance, then by row."""
    # One key of 64 bits sorts ten times as fast as three keys. As integers, positive numbers of float32 keep their
    # order, and negative ones, whose sign comes first, have the opposite one. -0 + 0 is 0.
    bits = (distance + np.float32(0)).view(np.uint32)
    ordered = np.where(bits >> np.uint32(31), ~bits, bits | np.uint32(1 << 31))
    key = query.astype(np.uint64) << np.uint64(32) | ordered
    order: Rows = np.argsort(key)
    ranked = key[order]
    equal = ranked[1:] == ranked[:-1]
    tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))  # runs, each of one key
    among = order[tied]
    order[tied] = among[np.lexsort((row[among], key[among]))]
    return order


def itself_first(found: TopK, itself: Rows, columns: int) -> TopK:
    """The answer of a search that left each query's own row out, with this row as the first neighbour, at distance 0.

    It goes by row: it holds even if a picture's two vectors, from two kinds of device, differ slightly, or if other
    pictures have the same vector. itself: int64 (n,), for each query its own row, or NONE. columns: of the result, at
    least those found: one more if the library is too small to have had a neighbour for each.
    """
    known: Rows = np.flatnonzero(itself != NONE)
    before_all = np.full(len(known), -1, dtype=np.float32)
    merged = merge(widened(found, columns), known, before_all, itself[known])
    return TopK(np.maximum(merged.distances, 0), merged.rows)


def widened(found: TopK, columns: int) -> TopK:
    """The answer with so many columns, of which it may lack some."""
    missing = columns - found.rows.shape[1]
    return TopK(
        np.pad(found.distances, ((0, 0), (0, missing)), constant_values=np.inf),
        np.pad(found.rows, ((0, 0), (0, missing)), constant_values=NONE),
    )


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
