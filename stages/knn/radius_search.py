"""All rows within a distance whose hashes agree, exactly: from the nearest rows, or by looking at all rows.

The nearest are enough for a query whose last one is too far. For the others, hashes are compared first, which costs a
thousandth of a distance. Knows no backend, no files and no pictures.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stages.knn.backend import Distances, Floats, Mask, Rows, lower_squares
from stages.knn.top_k import NONE, TopK
from stages.knn.vector_set import VectorSet
from stages.record.hashes import BitCounts, Hashes, least_differing

_QUERIES, _ROWS = 32, 4096
"""Queries and rows of a block. They change the time and the memory of a look at all rows, never its result."""

_SPARSE = 1 / 128
"""The share of a block's pairs up to which each pair's distance is computed at once: a distance costs as much as about
so many bounds that come from one product."""


class TooManyPairsError(Exception):
    """There are more pairs than the caller can take."""


class RadiusPairs(NamedTuple):
    """n pairs: query `queries[i]` is at `distances[i]` from row `rows[i]`, and their hashes differ in `bits[i]`, as one
    lies best on the other (see stages.record.hashes); sorted by query, then by row."""

    queries: Rows  # int64 (n,)
    rows: Rows  # int64 (n,)
    distances: Distances  # float32 (n,)
    bits: BitCounts  # uint8 (n,)


@dataclass(frozen=True)
class HashedVectors:
    """Vectors with a hash for each, uint64 (n,)."""

    points: VectorSet
    hashes: Hashes


@dataclass(frozen=True)
class RadiusLimits:
    """distance, bits: the largest of a pair. most: pairs."""

    distance: float
    bits: int
    most: int


def pairs_within(
    queries: HashedVectors, library: HashedVectors, limits: RadiusLimits, nearest: TopK, exclude: Rows
) -> RadiusPairs:
    """All pairs of queries and rows within the limits.

    nearest: the nearest rows of each query, exactly, any number of them. exclude: int64 (n,), for each query a row to
    leave out, or NONE, also left out of `nearest`. Raises TooManyError for more pairs than the most.
    """
    near = (nearest.rows != NONE) & (nearest.distances.astype(np.float64) <= limits.distance)
    more = near.all(axis=1) & (near.shape[1] < len(library.points) - (exclude != NONE))
    query, column = np.nonzero(near & ~more[:, None])
    row, distance = nearest.rows[query, column], nearest.distances[query, column]
    bits = least_differing(queries.hashes[query], library.hashes[row])
    agree = bits <= limits.bits
    found = [RadiusPairs(query[agree], row[agree], distance[agree], bits[agree])]
    count = len(found[0].rows)
    open_ = np.flatnonzero(more)
    for start in range(0, len(open_), _QUERIES):
        some = open_[start : start + _QUERIES]
        mine = HashedVectors(queries.points.part(some), queries.hashes[some])
        directions: Floats | None = None
        for first in range(0, len(library.points), _ROWS):
            part = slice(first, min(first + _ROWS, len(library.points)))
            chosen = _agreeing(mine, library, part, limits.bits, exclude[some])
            if np.count_nonzero(chosen) > _SPARSE * chosen.size:
                directions = mine.points.directions(slice(None)) if directions is None else directions
                chosen &= _possible(directions, library.points, part, limits.distance)
            query, column = np.nonzero(chosen)
            each = _measured(mine, library, query, column + first, limits.distance)
            found.append(each._replace(queries=some[each.queries]))
            count += len(each.rows)
            if count > limits.most:
                raise TooManyPairsError
    if count > limits.most:
        raise TooManyPairsError
    return _sorted(found)


def _agreeing(mine: HashedVectors, library: HashedVectors, part: slice, bits: int, exclude: Rows) -> Mask:
    """The pairs, (queries, rows of the part), whose hashes agree, without the excluded ones."""
    theirs = library.hashes[part]
    chosen: Mask = least_differing(mine.hashes[:, None], theirs) <= bits
    inside = (exclude >= part.start) & (exclude < part.stop)
    chosen[np.flatnonzero(inside), exclude[inside] - part.start] = False
    return chosen


def _possible(directions: Floats, library: VectorSet, part: slice, distance: float) -> Mask:
    """The pairs that a bound of their distance does not rule out."""
    lengths = np.einsum("ij,ij->i", directions, directions)
    squares = lower_squares(directions, lengths, library.directions(part))
    possible: Mask = ~(library.at_least(squares).astype(np.float64) > distance)
    return possible


def _measured(mine: HashedVectors, library: HashedVectors, query: Rows, row: Rows, distance: float) -> RadiusPairs:
    """Of these pairs, those that are near enough."""
    distances = mine.points.distances(query, library.points, row)
    near = distances.astype(np.float64) <= distance
    query, row = query[near], row[near]
    return RadiusPairs(query, row, distances[near], least_differing(mine.hashes[query], library.hashes[row]))


def _sorted(found: list[RadiusPairs]) -> RadiusPairs:
    query, row, distance, bits = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.lexsort((row, query))
    return RadiusPairs(query[order], row[order], distance[order], bits[order])
