"""The neighbours stage: all pairs of copies in the library, exact ones by id and near ones proposed by their hashes.

Runs as `python -m stages.neighbours`, under Pachyderm or on plain directories. Knows neither models nor queries.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.neighbours"))

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from stages.datum.contract import Datum, DatumInput, StageError
from stages.datum.input_cache import InputCache
from stages.datum.stage_parameters import integer, number, one_of
from stages.files import segment_files
from stages.files.segment_files import SegmentFacts
from stages.files.tables.columns import SourceColumn
from stages.files.tables.index_table import IndexTable
from stages.files.tables.pair_table import PairedPictures, PairTable
from stages.files.thumbnail_files import LazyThumbnails
from stages.knn.backend import Rows
from stages.knn.hash_index import HashIndex
from stages.knn.search_settings import METRICS
from stages.knn.vector_set import VectorSet
from stages.quality.copy_pairs import (
    CopyPairs,
    RadiusLimits,
    RadiusPairs,
    SegmentPictures,
    TooManyPairsError,
    confirm_pairs,
    pairs_within,
)
from stages.record.hashes import Hashes
from stages.record.sources import Source

VERSION = 6
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

MOST_BITS = 24
"""The highest HASH_BITS: in 32 of 64 bits any two hashes differ."""

MOST_PAIRS = 2_000_000
"""Pairs of two segments; their table takes half a kilobyte of memory for each."""


@dataclass(frozen=True)
class NeighbourSegment:
    """A segment of the index with what is read of it when it is asked for: its facts, its hashes, and, where two hashes
    agree, its pictures, their vectors and their thumbnails."""

    index: DatumInput
    metric: str

    @property
    def name(self) -> str:
        """The segment's name."""
        return segment_files.name_of(self.index)

    @cached_property
    def facts(self) -> SegmentFacts:
        """The facts of index.json."""
        return segment_files.read_facts(self.index)

    @cached_property
    def hashes(self) -> Hashes:
        """The hash of each picture, uint64 (n,)."""
        found, count = segment_files.read_hashes(self.index), self.facts.count
        if len(found) != count:
            raise StageError(
                f"segment {self.name} has {len(found)} hashes for {count} pictures; reprocess the index pipeline: "
                "lookalike deploy --reprocess index"
            )
        return found

    @cached_property
    def images(self) -> IndexTable:
        """The table of its pictures."""
        return segment_files.read_table(self.index)

    @cached_property
    def points(self) -> VectorSet:
        """The vector of each picture, memory-mapped."""
        dimension = self.facts.origin.dimension
        return VectorSet(segment_files.read_points(self.index, self.images.vectors, dimension), self.metric)

    @cached_property
    def thumbnails(self) -> LazyThumbnails:
        """The thumbnail of each picture."""
        return segment_files.thumbnails(self.index, self.images)

    @property
    def side(self) -> SegmentPictures:
        """What verdicts on its pictures need."""
        return SegmentPictures(self.name, self.images.sources, self.hashes, self.thumbnails)


def start(environment: Mapping[str, str]) -> "NeighboursStage":
    """Reads METRIC, THRESHOLD and HASH_BITS; returns the function that processes one datum at a time."""
    bits = integer(environment, "HASH_BITS", default=16, lowest=0, highest=MOST_BITS)
    limits = RadiusLimits(number(environment, "THRESHOLD", 0.0), bits, MOST_PAIRS)
    return NeighboursStage(one_of(environment, "METRIC", METRICS), limits)


class NeighboursStage:
    """Processes two sixteenths of the library. Keeps the left one for the next right ones.

    The datum's inputs, lazy or not: `left` and `right`, directories /<segment> of the index, or groups of the files in
    those whose names begin with one digit: what else a segment has may change without a comparison. Where left ≤ right
    it writes, if there are any, /pairs/<left>/<right>.parquet (Pairs): all pairs of different pictures of which one is
    a copy of the other by their thumbnails (stages.quality.registration) and, with left = right, each picture with
    several sources and itself. Thumbnails are compared of pairs within THRESHOLD whose perceptual hashes differ in at
    most HASH_BITS, as one lies on the other. Where right comes first, the other way round is a datum as well, and
    nothing is read.

    Beyond facts and hashes, a file of a lazy input is opened only where hashes agree; of thumbnails those of the pieces
    that such pictures are in.
    """

    def __init__(self, metric: str, limits: RadiusLimits) -> None:
        self._metric = metric
        self._limits = limits
        self._left = InputCache(self._opened)

    def __call__(self, datum: Datum) -> None:
        first, second = (segment_files.segments(datum.inputs[side]) for side in ("left", "right"))
        if first[0].repo_path > second[0].repo_path:
            return
        one = first[0].repo_path == second[0].repo_path
        lefts = self._left.get(datum.inputs["left"])
        rights = lefts if one else self._opened(datum.inputs["right"])
        pairs = 0
        for right in rights:
            _must_match(lefts[0], right)
            index = HashIndex(right.hashes, self._limits.bits)
            for left in (each for each in lefts if each.name <= right.name):
                pairs += _write_pairs(datum.out, left, right, self._copies(left, right, index), self._limits)
        mine, theirs = (sum(each.facts.count for each in side) for side in (lefts, rights))
        print(f"neighbours: {mine} pictures with {theirs}: {pairs} pairs of copies")

    def _opened(self, group: DatumInput) -> list[NeighbourSegment]:
        return [NeighbourSegment(each, self._metric) for each in segment_files.segments(group)]

    def _copies(self, left: NeighbourSegment, right: NeighbourSegment, index: HashIndex) -> CopyPairs:
        """The pairs of copies, each once."""
        one = left is right
        try:
            near = pairs_within(index.pairs(left.hashes, after=one), lambda: (left.points, right.points), self._limits)
        except TooManyPairsError:
            raise StageError(
                f"segments {left.name} and {right.name} have more than {self._limits.most:,} pairs of pictures within "
                f"THRESHOLD={self._limits.distance:g} and HASH_BITS={self._limits.bits}: set lower ones "
                "(lookalike deploy --set THRESHOLD=… --set HASH_BITS=…)"
            ) from None
        if one:
            near = _with_copies(near, left.images)
        if not len(near.rows):
            return CopyPairs(near, near.bits, near.bits.astype(np.bool_))
        side = left.side
        return confirm_pairs(near, side, side if one else right.side, self._limits.bits)


def _must_match(left: NeighbourSegment, right: NeighbourSegment) -> None:
    names = f"segment {left.name}", f"segment {right.name}"
    if mismatch := left.facts.origin.mismatch(right.facts.origin, *names):
        raise StageError(f"{mismatch} {segment_files.WAIT}")


def _write_pairs(
    out: Path, left: NeighbourSegment, right: NeighbourSegment, found: CopyPairs, limits: RadiusLimits
) -> int:
    """Writes the pairs, if there are any; returns their number."""
    near = found.pairs
    if not len(near.queries):
        return 0
    # All ids of the left segment come before those of the right one.
    first, second = near.queries, near.rows + (0 if left is right else len(left.images))
    rows = np.union1d(first, second)
    ids, sources, thumbnails = zip(*_rows(rows, [left] if left is right else [left, right]), strict=True)
    rows_of = (np.searchsorted(rows, each).astype(np.int32) for each in (first, second))
    pairs = PairTable.of_pictures(
        PairedPictures(ids, sources, thumbnails, *rows_of),
        distances=near.distances,
        bits=near.bits,
        turns=found.turns,
        near=found.near,
        origin=left.images.origin,
        metric=left.metric,
        threshold=limits.distance,
        hash_bits=limits.bits,
    )
    target = out / "pairs" / left.name / f"{right.name}.parquet"
    target.parent.mkdir(parents=True, exist_ok=True)
    pairs.write(target)
    return len(pairs)


def _rows(rows: Rows, sides: Sequence[NeighbourSegment]) -> Iterator[tuple[str, Sequence[Source], bytes]]:
    """The id, the sources and the thumbnail of each row of the segments one after the other."""
    ends = np.cumsum([len(each.images) for each in sides]).tolist()
    for row in rows.tolist():
        side = bisect_right(ends, row)
        of, at = sides[side], row - (ends[side - 1] if side else 0)
        yield of.images.ids[at], of.images.sources[at], of.thumbnails[at]


def _with_copies(near: RadiusPairs, images: IndexTable) -> RadiusPairs:
    """The pairs within one segment, and each picture with several sources with itself."""
    copies = np.flatnonzero(SourceColumn.of(images.sources).counts > 1)
    query = np.concatenate([near.queries, copies])
    row = np.concatenate([near.rows, copies])
    distance = np.concatenate([near.distances, np.zeros(len(copies), np.float32)])
    bits = np.concatenate([near.bits, np.zeros(len(copies), np.uint8)])
    order = np.lexsort((row, query))
    return RadiusPairs(query[order], row[order], distance[order], bits[order])
