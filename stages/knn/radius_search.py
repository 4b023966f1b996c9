"""The pairs of pictures within a distance, of those whose hashes agree. Knows no backend, no files and no pictures."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stages.knn.backend import Distances, Rows
from stages.knn.hash_index import HashPairs
from stages.knn.vector_set import VectorSet
from stages.record.hashes import BitCounts


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
class RadiusLimits:
    """distance, bits: the largest of a pair. most: pairs."""

    distance: float
    bits: int
    most: int


def pairs_within(
    proposed: Iterable[HashPairs], points: Callable[[], tuple[VectorSet, VectorSet]], limits: RadiusLimits
) -> RadiusPairs:
    """The proposed pairs within the distance, in their order. points: gives the vectors of queries and rows; asked for
    if there is a pair. Raises TooManyPairsError for more pairs than the most."""
    none = np.empty(0, np.int64)
    found, count = [RadiusPairs(none, none, np.empty(0, np.float32), np.empty(0, np.uint8))], 0
    for each in proposed:
        if not len(each.rows):
            continue
        mine, theirs = points()
        distances = mine.distances(each.queries, theirs, each.rows)
        near = distances.astype(np.float64) <= limits.distance
        found.append(RadiusPairs(each.queries[near], each.rows[near], distances[near], each.bits[near]))
        count += len(found[-1].rows)
        if count > limits.most:
            raise TooManyPairsError
    return RadiusPairs(*map(np.concatenate, zip(*found, strict=True)))
