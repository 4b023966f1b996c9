"""A segment of the library, ready to be searched in one metric, and the copies that make it faster."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stages.files import vector_files
from stages.knn.backend import BoundsProvider, LibraryCopy
from stages.knn.blas_threads import others_turn
from stages.knn.exact_searcher import ExactSearcher
from stages.knn.search_settings import SearchSettings
from stages.knn.searcher_factory import bounds_alone, open_backend, open_bounding, open_copy
from stages.knn.top_k import Searcher
from stages.knn.vector_set import VectorSet
from stages.serving.search.mapped_segment import MappedSegment


@dataclass
class SearchableSegment:
    """A segment with its vectors in one metric, and what searches them.

    searcher: of the backend that was asked for, if it only proposes candidates. bounding: bounds all distances. copy:
    the same faster; None until it is made, or if that is not possible. settled: whether this is decided.
    """

    segment: MappedSegment
    points: VectorSet
    searcher: Searcher | None
    bounding: BoundsProvider
    copy: LibraryCopy | None = None
    settled: bool = False


@dataclass(frozen=True)
class SegmentPreparer:
    """Prepares segments by the settings."""

    settings: SearchSettings
    environment: Mapping[str, str]
    report: Callable[[str], None]

    def open(self, segment: MappedSegment, metric: str) -> SearchableSegment:
        """The segment, ready to be searched; its vectors are checked, and leave the memory. Raises StageError if they
        or the backend cannot be used."""
        with others_turn():
            points = VectorSet(segment.vectors, metric, segment.table.ids)
            if bounds_alone(self.settings, self.environment):
                vector_files.release(segment.vectors)
                bounding, settled = open_bounding(points.rows), self.settings.backend != "auto"
                return SearchableSegment(segment, points, None, bounding, settled=settled)
            backend = open_backend(points.prepared, self.settings, self.environment, self.report)
            if isinstance(backend, BoundsProvider):
                return SearchableSegment(segment, points, None, backend, settled=self.settings.backend != "auto")
            bounding = open_bounding(points.prepared)
        return SearchableSegment(segment, points, ExactSearcher(points, backend), bounding, settled=True)

    def copy(self, segments: Sequence[SearchableSegment], closing: threading.Event) -> None:
        """Makes the copies of those segments that lack them, until closing is set. Of the vectors themselves a search
        then reads few, so they leave the memory."""
        centre = next((each.copy.centre for each in segments if each.copy is not None), None)
        for each in segments:
            if closing.is_set():
                return
            if not each.settled:
                copy = open_copy(each.points.rows, centre, self.report)
                if copy is None:
                    return
                centre = copy.centre
                each.copy = copy if copy.usable else None
                each.settled = True
                vector_files.release(each.segment.vectors, scattered=copy.usable)
