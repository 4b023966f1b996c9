"""Pairs of copies: of pictures whose hashes agree those within a distance, and of these those that are copies by their
thumbnails, as many as are worth a look.

Knows the pictures of segments, and no files of its own and no stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from stages.datum.contract import StageError
from stages.datum.progress import Progress
from stages.files.tables.columns import taken
from stages.knn.backend import Distances, Rows
from stages.knn.hash_index import HashPairs
from stages.knn.vector_set import VectorSet
from stages.quality import registration
from stages.quality.registration import PicturePyramid
from stages.record.hashes import NO_VERDICT, BitCounts, Hashes
from stages.record.sources import Source, may_be_copies

_Mask = np.ndarray[Any, np.dtype[np.bool_]]

MOST_EACH = 16
"""Pictures that one is compared with in each segment: the most alike by their hashes. A library of one scene in a
thousand pictures would else take hours for what nobody looks at."""

_LOOKS = 256  # kept for the pairs that follow, 170 kB each


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


class SegmentPictures(NamedTuple):
    """The n pictures of a segment: sources, hashes, uint64 (n,), and thumbnails, JPEG files, by row."""

    name: str
    sources: Sequence[Sequence[Source]]
    hashes: Hashes
    thumbnails: Sequence[bytes]


class CopyPairs(NamedTuple):
    """n pairs, sorted by query and then by row. turns: uint8 (n,), the turn that lays the row's picture on the query's.
    near: bool (n,), false only for a picture and itself that shows too little to tell whether its files are copies."""

    pairs: RadiusPairs
    turns: BitCounts
    near: _Mask


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


def confirm_pairs(proposed: RadiusPairs, queries: SegmentPictures, rows: SegmentPictures, bits: int) -> CopyPairs:
    """The pairs of copies among the proposed ones, and all of a picture with itself, if the sides are one. bits: in
    which hashes may differ. Raises StageError for a damaged thumbnail."""
    proposed = _most_alike(proposed)
    looks = [lru_cache(_LOOKS)(partial(_look, side)) for side in (queries, rows)]
    sources = [_sources(*of) for of in ((queries, proposed.queries), (rows, proposed.rows))]
    progress = Progress("pairs", len(proposed.rows))
    turns = np.full(len(proposed.rows), -1)
    itself = np.zeros(len(proposed.rows), np.bool_)
    for at, (query, row) in enumerate(zip(proposed.queries.tolist(), proposed.rows.tolist(), strict=True)):
        progress.add()
        if queries is rows and query == row:
            itself[at] = True
            turns[at] = 0 if queries.hashes[query] != NO_VERDICT else -1
            continue
        # Of pictures that may be copies only if they are turned, those that lie alike need no look: a burst has many.
        hashes = int(queries.hashes[query]), int(rows.hashes[row])
        lie_alike = (hashes[0] ^ hashes[1]).bit_count() <= bits
        if may_be_copies(sources[0][query], sources[1][row], turned=not lie_alike):
            found = registration.copy_turn(looks[0](query), looks[1](row), hashes, bits)
            turns[at] = -1 if found is None else found
    kept = itself | (turns >= 0)
    return CopyPairs(_only(proposed, kept), np.maximum(turns, 0)[kept].astype(np.uint8), (turns >= 0)[kept])


def _sources(side: SegmentPictures, rows: Rows) -> dict[int, Sequence[Source]]:
    """The sources of these pictures, by row."""
    wanted = np.unique(rows)
    return dict(zip(wanted.tolist(), taken(side.sources, wanted), strict=True))


def _look(side: SegmentPictures, row: int) -> PicturePyramid:
    try:
        return registration.pyramid(side.thumbnails[row])
    except OSError as error:
        raise StageError(
            f"a thumbnail of segment {side.name} cannot be read ({error}); make them again: "
            "lookalike deploy --reprocess index"
        ) from error


def _most_alike(proposed: RadiusPairs) -> RadiusPairs:
    """At most MOST_EACH pairs of each query; the order stays."""
    order = np.lexsort((proposed.rows, proposed.distances, proposed.bits, proposed.queries))
    ordered = proposed.queries[order]
    number = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    kept = np.sort(order[number < MOST_EACH])
    return _only(proposed, kept)


def _only(pairs: RadiusPairs, chosen: Any) -> RadiusPairs:
    return RadiusPairs(pairs.queries[chosen], pairs.rows[chosen], pairs.distances[chosen], pairs.bits[chosen])
