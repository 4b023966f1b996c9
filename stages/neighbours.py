"""The neighbours stage: the nearest pictures in one segment of every picture of another, and all pairs of copies.

Runs as `python -m stages.neighbours`, under Pachyderm or on plain directories. Knows neither models nor queries.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.neighbours"))

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stages.datum.contract import Datum, DatumInput, StageError
from stages.datum.input_cache import InputCache
from stages.datum.stage_parameters import integer, number
from stages.files import segment_files
from stages.files.tables.index_table import IndexTable
from stages.files.tables.nearest_table import PictureRows, as_nearest, write_nearest
from stages.files.tables.pair_table import PairedPictures, PairTable
from stages.files.thumbnail_files import LazyThumbnails
from stages.knn.backend import Rows
from stages.knn.radius_search import HashedVectors, RadiusLimits, RadiusPairs, TooManyPairsError, pairs_within
from stages.knn.search_settings import SearchSettings, read_settings
from stages.knn.searcher_factory import open_searcher
from stages.knn.top_k import NONE, TopK
from stages.knn.vector_set import VectorSet
from stages.quality.copy_pairs import CopyPairs, SegmentPictures, confirm_pairs
from stages.record.hashes import Hashes
from stages.record.sources import Source

VERSION = 5
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

MOST_BITS = 24
"""The highest HASH_BITS: in 32 of 64 bits any two hashes differ."""

MOST_PAIRS = 2_000_000
"""Pairs of one datum; their table takes half a kilobyte of memory for each."""


@dataclass(frozen=True)
class NeighbourSegment:
    """An open segment of the index: its name, its pictures, their vectors and their thumbnails."""

    name: str
    images: IndexTable
    points: VectorSet
    thumbnails: LazyThumbnails


def start(environment: Mapping[str, str]) -> "NeighboursStage":
    """Reads K, METRIC, BACKEND, THRESHOLD and HASH_BITS; returns the function that processes one datum at a time."""
    chosen = read_settings(environment)
    if chosen.algorithm != "exact":
        raise StageError(
            f"ALGORITHM={chosen.algorithm}: near pictures are always searched exactly; remove it from the spec's env"
        )
    bits = integer(environment, "HASH_BITS", default=16, lowest=0, highest=MOST_BITS)
    return NeighboursStage(chosen, RadiusLimits(number(environment, "THRESHOLD", 0.0), bits, MOST_PAIRS), environment)


class NeighboursStage:
    """Processes one pair of segments at a time. Keeps the left segment for the next right ones.

    The datum's inputs, lazy or not: `left` and `right`, directories /<segment> of the index, or groups of the files in
    them that are read here: what else a segment has may change without a comparison. Writes
    /nearest/<left>/<right>.npy: NEAREST (n, k'), of each picture of `left` its k' = min(K, others in `right`) nearest
    in `right` by distance, then id, never itself. With left = right also /pictures/<left>.parquet (Pictures). With
    left ≤ right, if there are any, /pairs/<left>/<right>.parquet (Pairs): all pairs of different pictures of which one
    is a copy of the other by their thumbnails (stages.quality.registration) and, with left = right, each picture with
    several sources and itself. Thumbnails are compared of pairs within THRESHOLD whose perceptual hashes differ in at
    most HASH_BITS, as one lies on the other.

    A file of a lazy input is opened only where it is needed: of thumbnails those of the pieces that such pictures are
    in.
    """

    def __init__(self, chosen: SearchSettings, limits: RadiusLimits, environment: Mapping[str, str]) -> None:
        self._settings = chosen
        self._limits = limits
        self._environment = environment
        self._left = InputCache(self._opened)
        self._hashes = InputCache(segment_files.read_hashes)

    def __call__(self, datum: Datum) -> None:
        datum = replace(datum, inputs={name: segment_files.of_group(each) for name, each in datum.inputs.items()})
        left_input, right_input = datum.inputs["left"], datum.inputs["right"]
        left = self._left.get(left_input)
        one = segment_files.name_of(left_input) == segment_files.name_of(right_input)
        right = left if one else self._opened(right_input)
        names = f"segment {left.name}", f"segment {right.name}"
        if mismatch := left.images.origin.mismatch(right.images.origin, *names):
            raise StageError(f"{mismatch} {segment_files.WAIT}")
        count = len(left.points)
        exclude = np.arange(count, dtype=np.int64) if one else np.full(count, NONE, dtype=np.int64)
        searcher = open_searcher(right.points, self._settings, self._environment)
        found = searcher.search(left.points, self._settings.k, exclude)
        target = datum.out / "nearest" / left.name / f"{right.name}.npy"
        target.parent.mkdir(parents=True, exist_ok=True)
        write_nearest(as_nearest(found.rows, found.distances), target)
        if one:
            self._write_pictures(datum, left)
        pairs = 0
        if left.name <= right.name:
            pairs = self._write_pairs(datum, left, right, self._copies(datum, left, right, found, exclude))
        print(f"neighbours: {count} pictures of {left.name} in {len(right.points)} of {right.name}, {pairs} copies")

    def _opened(self, index: DatumInput) -> NeighbourSegment:
        images = segment_files.read_table(index)
        vectors = segment_files.read_points(index, images.vectors, images.origin.dimension)
        points = VectorSet(vectors, self._settings.metric)
        return NeighbourSegment(segment_files.name_of(index), images, points, segment_files.thumbnails(index, images))

    def _copies(
        self, datum: Datum, left: NeighbourSegment, right: NeighbourSegment, found: TopK, exclude: Rows
    ) -> CopyPairs:
        """The pairs of copies, each once."""
        one = left is right
        mine = _hashed(left, self._hashes.get(datum.inputs["left"]))
        theirs = mine if one else _hashed(right, segment_files.read_hashes(datum.inputs["right"]))
        limits = replace(self._limits, most=self._limits.most * (1 + one))
        try:
            near = pairs_within(mine, theirs, limits, found, exclude)
        except TooManyPairsError:
            raise StageError(
                f"segments {left.name} and {right.name} have more than {self._limits.most:,} pairs of pictures within "
                f"THRESHOLD={limits.distance:g} and HASH_BITS={limits.bits}: set lower ones "
                "(lookalike deploy --set THRESHOLD=… --set HASH_BITS=…)"
            ) from None
        side = _side(left, mine)
        if one:
            return confirm_pairs(_once(near, left.images), side, side, limits.bits)
        return confirm_pairs(near, side, _side(right, theirs), limits.bits)

    def _write_pictures(self, datum: Datum, segment: NeighbourSegment) -> None:
        pictures = PictureRows.of(segment.images, metric=self._settings.metric, k=self._settings.k)
        target = datum.out / "pictures" / f"{segment.name}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        pictures.write(target)

    def _write_pairs(self, datum: Datum, left: NeighbourSegment, right: NeighbourSegment, found: CopyPairs) -> int:
        """Writes the pairs, if there are any; returns their number."""
        near = found.pairs
        if not len(near.queries):
            return 0
        # All ids of the left segment come before those of the right one.
        first, second = near.queries, near.rows + (0 if left is right else len(left.points))
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
            metric=self._settings.metric,
            threshold=self._limits.distance,
            hash_bits=self._limits.bits,
        )
        target = datum.out / "pairs" / left.name / f"{right.name}.parquet"
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


def _hashed(segment: NeighbourSegment, hashes: Hashes) -> HashedVectors:
    if len(hashes) != len(segment.points):
        raise StageError(
            f"segment {segment.name} has {len(hashes)} hashes for {len(segment.points)} pictures; reprocess the index "
            "pipeline: lookalike deploy --reprocess index"
        )
    return HashedVectors(segment.points, hashes)


def _side(segment: NeighbourSegment, hashed: HashedVectors) -> SegmentPictures:
    return SegmentPictures(segment.name, segment.images.sources, hashed.hashes, segment.thumbnails)


def _once(near: RadiusPairs, images: IndexTable) -> RadiusPairs:
    """Each pair within one segment once, and each picture with several sources with itself."""
    copies = np.flatnonzero([len(sources) > 1 for sources in images.sources])
    kept = near.queries < near.rows
    query = np.concatenate([near.queries[kept], copies])
    row = np.concatenate([near.rows[kept], copies])
    distance = np.concatenate([near.distances[kept], np.zeros(len(copies), np.float32)])
    bits = np.concatenate([near.bits[kept], np.zeros(len(copies), np.uint8)])
    order = np.lexsort((row, query))
    return RadiusPairs(query[order], row[order], distance[order], bits[order])
