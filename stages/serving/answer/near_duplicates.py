"""Near-duplicates among the pictures of an answer: a ranking folded into groups, and copies of the query.

Knows neither questions nor HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stages.knn.backend import Distances, Mask, Rows
from stages.knn.top_k import NONE, TopK
from stages.knn.vector_set import VectorSet
from stages.quality.distance_scale import DistanceScale
from stages.record.hashes import Hashes, differing
from stages.serving.search.mapped_library import MappedLibrary

NEAR, NEAR_BITS = 0.8, 12
"""Pairs of pictures within this Euclidean distance, or that of changed copies by the model's scale, whose perceptual
hashes differ in so few bits are near-duplicates, whichever metric a question has. Less than THRESHOLD and HASH_BITS of
specs/duplicates, since nobody looks at them."""

MOST_LISTED = 100
"""Near-duplicates of one picture that an answer lists beyond the k nearest pictures."""

_AT_ONCE = 4096
"""Vectors that are compared at once."""


@dataclass(frozen=True)
class FoldedRanking:
    """The beginning of a ranking, in groups of near-duplicates.

    places: int64 (n,), in the ranking, from 0; some near-duplicates are left out of large groups. distances: float32
    (n,). rows: int64 (n,), of the library. groups: int64 (n,), from 1, in the order of their first pictures.
    """

    places: Rows
    distances: Distances
    rows: Rows
    groups: Rows


def largest_distance(scale: DistanceScale | None) -> float:
    """The largest distance of near-duplicates by a model's scale."""
    return NEAR if scale is None else scale.euclidean.changed


def fold(
    library: MappedLibrary, found: TopK, k: int, max_distance: float | None, exhausted: bool, near: float
) -> FoldedRanking | None:
    """The ranking of one question up to the first picture of its k-th group: the nearest picture and its
    near-duplicates are a group, and so on with the rest. It ends earlier where no picture is left within max_distance.
    exhausted: whether no further pictures could be found. near: the largest distance of near-duplicates. None if the
    ranking has to be longer."""
    distances, rows = found.distances[0], found.rows[0]
    kept = rows != NONE
    if max_distance is not None:
        kept &= distances <= max_distance
    groups = fold_rows(library, rows[kept], k, near)
    if not exhausted and kept.all() and groups.max(initial=0) < k:
        return None
    places = _listed(groups, k)
    return FoldedRanking(places, distances[kept][places], rows[kept][places], groups[places])


def fold_rows(library: MappedLibrary, rows: Rows, most: int, near: float) -> Rows:
    """The group of each of the first pictures, int64, up to the first one of the last of at most so many groups. rows:
    in the order of the ranking."""
    hashes = library.hashes(rows)
    groups = np.zeros(len(rows), np.int64)
    count = 0
    for place in range(len(rows)):
        if groups[place]:
            continue
        count += 1
        groups[place] = count
        if count == most:
            return groups[: place + 1]
        alike = place + np.flatnonzero((groups[place:] == 0) & (differing(hashes[place], hashes[place:]) <= NEAR_BITS))
        first = VectorSet(library.vectors(rows[[place]]))
        for some in (alike[at : at + _AT_ONCE] for at in range(0, len(alike), _AT_ONCE)):
            groups[some[_within(first, VectorSet(library.vectors(rows[some])), near)]] = count
    return groups


def near_any(points: VectorSet, own: Sequence[int], vectors: VectorSet, hashes: Hashes, near: float) -> Mask:
    """Which of n vectors, with their hashes, are near-duplicates of any picture of a question. own: the perceptual
    hashes of these pictures, whose vectors the first points are."""
    if not len(own):  # a vector alone
        return np.zeros(len(hashes), np.bool_)
    picture, place = np.nonzero(differing(np.array(own, np.uint64)[:, None], hashes) <= NEAR_BITS)
    found = np.zeros(len(hashes), np.bool_)
    found[place[points.distances(picture, vectors, place) <= near]] = True
    return found


def _within(first: VectorSet, others: VectorSet, largest: float) -> Mask:
    every = np.arange(len(others))
    near: Mask = first.distances(np.zeros_like(every), others, every) <= largest
    return near


def _listed(groups: Rows, k: int) -> Rows:
    """The places of the k nearest, and of each group's first pictures."""
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups)
    within = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
    places: Rows = np.sort(order[(within <= MOST_LISTED) | (order < k)])
    return places
