"""Searches of a library that is held open: a few queries at a time, over all segments, exactly.

Answers are those of the search stage to the last bit: the same `VectorSet.distances`, the same order, and a picture of
the library first among its own neighbours.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from stages.datum.contract import StageError
from stages.knn.backend import Distances, Mask, Rows, Vectors
from stages.knn.blas_threads import in_threads
from stages.knn.bounded_search import nearest
from stages.knn.code_index import CodeIndex
from stages.knn.joint_queries import JointQueries, LibraryPart, PointCombination, pair_distances
from stages.knn.search_settings import SearchSettings
from stages.knn.top_k import NONE, TopK, empty, itself_first, merge, widened
from stages.knn.vector_set import VectorSet
from stages.serving.search.mapped_library import MappedLibrary
from stages.serving.search.mapped_segment import MappedSegment
from stages.serving.search.searchable_segment import SearchableSegment, SegmentPreparer

_one_search = threading.Lock()
"""Searches have all cores to themselves, one after the other: the threads of BLAS are the process's."""


@dataclass(frozen=True)
class SearchResult:
    """The answer to n queries. topk: of rows of the library. exact: proven. recall: as `index` measured it for these
    codes, or None for an exact answer."""

    topk: TopK
    exact: bool
    recall: float | None


class SearchEngine:
    """Searches of one library. May be used from several threads.

    Can answer as soon as it is made; with BACKEND=auto a thread then makes copies of the vectors in 8-bit integers,
    with which it answers several times faster (`prepared` waits for it). Another metric than the settings' is prepared
    by its first search.
    """

    def __init__(
        self,
        library: MappedLibrary,
        settings: SearchSettings,
        environment: Mapping[str, str],
        report: Callable[[str], None] = print,
        reuse: "SearchEngine | None" = None,
    ) -> None:
        """reuse: of an earlier commit of the index, whose unchanged segments are taken over, prepared as they are.
        report: takes lines for the log. Raises StageError if the vectors or the backend cannot be used."""
        self._library = library
        self._settings = settings
        self._opener = SegmentPreparer(settings, environment, report)
        keys = {each.key for each in library.segments}
        kept: dict[tuple[str, str], SearchableSegment] = {} if reuse is None else reuse._segments  # by key and metric
        self._segments: dict[tuple[str, str], SearchableSegment] = {
            key: each for key, each in kept.items() if key[0] in keys
        }
        self._closing = threading.Event()
        self._made: dict[str, list[SearchableSegment]] = {}
        self._copying: dict[str, threading.Thread] = {}
        with _one_search:
            self._of(settings.metric)

    def search(
        self,
        points: Vectors,
        k: int,
        *,
        metric: str | None = None,
        known: Sequence[int | None] | None = None,
        within: Mask | None = None,
        exact: bool = True,
    ) -> SearchResult:
        """The k nearest pictures of each point, by distance, then by id; a picture of the library is its own first
        neighbour, at distance 0.

        points: float32 (n, d). metric: by default the settings'. known: for each point the row of the picture that it
        belongs to, or None. within: bool (pictures,), the only pictures that may be neighbours, which are searched
        exactly. exact: False for an answer by the codes of the index. Raises StageError for a vector that is not finite
        and as `recall`, ValueError for a vector of another length.
        """
        asked = self._asked(points, metric)
        itself = _itself(known, len(points), within)
        recall = None if exact or within is not None else self.recall(asked.metric)
        with _one_search:
            segments = self._of(asked.metric)
            if recall is None:
                found = self._exactly(segments, asked, k, itself, within)
            else:
                found = self._by_codes(segments, asked, k, itself)
        return SearchResult(itself_first(found, itself, self._columns(k, within)), recall is None, recall)

    def combined(
        self,
        points: Vectors,
        k: int,
        *,
        how: PointCombination,
        metric: str | None = None,
        known: Sequence[int | None] | None = None,
        within: Mask | None = None,
    ) -> SearchResult:
        """The k nearest pictures to several points together, as one answer, which is exact.

        how: "any", by the distance from the nearest point, or "all", by that from the farthest. The other parameters
        are those of `search`; with "any", the pictures of the points themselves come first.
        """
        asked = self._asked(points, metric)
        itself = _itself(known, len(points), within)
        own: Rows = np.unique(itself[itself != NONE])
        questions = JointQueries(asked, np.array([len(points)]), how, np.zeros(len(own), np.int64), own)
        with _one_search:
            parts = self._parts(self._of(asked.metric))
            found = nearest(parts, questions, k, within)
            distances = np.full(len(own), -1, np.float32)
            if how == "all":
                distances = _from_all(parts, asked, itself, own)
        found = merge(widened(found, self._columns(k, within)), np.zeros(len(own), np.int64), distances, own)
        return SearchResult(TopK(np.maximum(found.distances, 0), found.rows), True, None)

    def recall(self, metric: str | None) -> float:
        """The share of the nearest that codes find in a metric, over all pictures, as `index` measured it. Raises
        StageError if the index has no codes of that metric."""
        metric = metric or self._settings.metric
        if not any(_codes(each, metric) for each in self._library.segments):
            raise StageError(
                f"the index has no codes for approximate answers by the {metric} distance: ask for exact ones, or "
                "deploy index with ALGORITHM=ivfflat, which codes segments of 4,096 pictures or more"
            )
        codes = [each.facts.codes if _codes(each, metric) else None for each in self._library.segments]
        found = [1.0 if each is None else each.recall for each in codes]
        sizes = [len(each) for each in self._library.segments]
        return float(np.average(found, weights=sizes))

    def prepared(self, timeout: float | None = None) -> bool:
        """Waits until all copies for faster answers are made; returns whether they are."""
        for thread in list(self._copying.values()):
            thread.join(timeout)
        return not any(thread.is_alive() for thread in self._copying.values())

    def close(self) -> None:
        """Ends the preparation of copies; searches remain possible."""
        self._closing.set()
        self.prepared()

    def _asked(self, points: Vectors, metric: str | None) -> VectorSet:
        if points.ndim != 2 or points.shape[1] != self._library.origin.dimension:
            raise ValueError(f"points of shape {points.shape} in {self._library.origin.dimension} dimensions")
        return VectorSet(points, metric or self._settings.metric)

    def _columns(self, k: int, within: Mask | None) -> int:
        return min(k, len(self._library) if within is None else int(np.count_nonzero(within)))

    def _of(self, metric: str) -> list[SearchableSegment]:
        """The segments for a metric, prepared if they are not yet."""
        if metric not in self._made:
            keys = [(each.key, metric) for each in self._library.segments]
            missing = [each for each in self._library.segments if (each.key, metric) not in self._segments]
            made = in_threads(partial(self._opener.open, metric=metric), missing)
            self._segments |= {(each.key, metric): found for each, found in zip(missing, made, strict=True)}
            self._made[metric] = [self._segments[key] for key in keys]
            work = (self._made[metric], self._closing)
            self._copying[metric] = threading.Thread(target=self._opener.copy, args=work, name="copy", daemon=True)
            self._copying[metric].start()
        return self._made[metric]

    def _exactly(
        self, segments: Sequence[SearchableSegment], asked: VectorSet, k: int, itself: Rows, within: Mask | None
    ) -> TopK:
        searchers = [each.searcher for each in segments if each.searcher is not None]
        if within is None and len(searchers) == len(segments):  # of a backend that proposes candidates
            return self._by_segment(asked, k, itself, lambda at, own: searchers[at].search(asked, k, own))
        return nearest(self._parts(segments), JointQueries.single(asked, itself), k, within)

    def _by_codes(self, segments: Sequence[SearchableSegment], asked: VectorSet, k: int, itself: Rows) -> TopK:
        """Each segment by its codes, those without any exactly."""
        parts = self._parts(segments)

        def found(at: int, own: Rows) -> TopK:
            codes = _codes(self._library.segments[at], asked.metric)
            if codes is None:
                return nearest([replace(parts[at], start=0)], JointQueries.single(asked, own), k, None)
            return codes.nearest(segments[at].points, asked, k, own)

        return self._by_segment(asked, k, itself, found)

    def _parts(self, segments: Sequence[SearchableSegment]) -> list[LibraryPart]:
        starts = self._library.starts
        return [LibraryPart(starts[at], each.points, each.copy or each.bounding) for at, each in enumerate(segments)]

    def _by_segment(self, asked: VectorSet, k: int, itself: Rows, search: Callable[[int, Rows], TopK]) -> TopK:
        """Each segment for itself, as in the search stage. search: of the segment with that number, where the rows of
        the points' own pictures are its own, too."""
        merged = empty(len(asked), self._columns(k, None))
        for at, (start, end) in enumerate(pairwise(self._library.starts)):
            inside = (itself >= start) & (itself < end)
            found = search(at, np.where(inside, itself - start, NONE))
            query, rank = np.nonzero(found.rows != NONE)
            merged = merge(merged, query, found.distances[query, rank], found.rows[query, rank] + start)
        return merged


def _codes(segment: MappedSegment, metric: str) -> CodeIndex | None:
    """The codes of a segment, if they are of that metric."""
    return segment.codes if segment.facts.codes is not None and segment.facts.codes.metric == metric else None


def _itself(known: Sequence[int | None] | None, count: int, within: Mask | None) -> Rows:
    """The rows of the points' own pictures, int64 (count,); NONE for those that may not be neighbours."""
    rows = [NONE] * count if known is None else [NONE if row is None else row for row in known]
    itself: Rows = np.array(rows, dtype=np.int64)
    if len(itself) != count:
        raise ValueError(f"{len(itself)} rows of {count} points")
    if within is not None:
        itself[(itself != NONE) & ~within[itself]] = NONE
    return itself


def _from_all(parts: Sequence[LibraryPart], asked: VectorSet, itself: Rows, own: Rows) -> Distances:
    """The distances of some of the points' own pictures from the farthest point, float32; none is far from itself."""
    count = len(asked)
    point, row = np.tile(np.arange(count), len(own)), np.repeat(own, count)
    questions = JointQueries.single(asked, np.full(count, NONE, np.int64))
    distances = pair_distances(VectorSet.distances, questions, parts, point, row)
    distances[itself[point] == row] = 0
    farthest: Distances = distances.reshape(len(own), count).max(axis=1)
    return farthest
