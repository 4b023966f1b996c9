"""A segment of the library, ready to be searched in one metric, and the copies that make it faster."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stages.knn.backend import Bounding, Copy
from stages.knn.exact import Exact
from stages.knn.factory import MACHINE, Machine, open_backend, open_bounding, open_copy
from stages.knn.settings import Settings
from stages.knn.threads import others_turn
from stages.knn.topk import Searcher
from stages.knn.vectorset import VectorSet
from stages.serving.search.mapped import IdsAsText, Mapped


@dataclass
class Prepared:
    """A segment with its vectors in one metric, and what searches them.

    searcher: of the backend that was asked for, if it only proposes candidates. bounding: bounds all distances. copy:
    the same faster; None until it is made, or if that is not possible. settled: whether this is decided.
    """

    segment: Mapped
    points: VectorSet
    searcher: Searcher | None
    bounding: Bounding
    copy: Copy | None = None
    settled: bool = False


@dataclass(frozen=True)
class Opener:
    """Prepares segments by the settings."""

    settings: Settings
    environment: Mapping[str, str]
    report: Callable[[str], None]
    machine: Machine = MACHINE

    def open(self, segment: Mapped, metric: str) -> Prepared:
        """The segment, ready to be searched. Raises StageError if its vectors or the backend cannot be used."""
        with others_turn():
            points = VectorSet(segment.vectors, metric, IdsAsText(segment.ids))
            backend = open_backend(points.prepared, self.settings, self.environment, self.report, self.machine)
            if isinstance(backend, Bounding):
                return Prepared(segment, points, None, backend, settled=self.settings.backend != "auto")
            bounding = open_bounding(points.prepared, self.machine)
        return Prepared(segment, points, Exact(points, backend), bounding, settled=True)

    def copy(self, segments: Sequence[Prepared], closing: threading.Event) -> None:
        """Makes the copies of those segments that lack them, until closing is set. Of the vectors themselves a search
        then reads few, so they leave the memory."""
        centre = next((each.copy.centre for each in segments if each.copy is not None), None)
        for each in segments:
            if closing.is_set():
                return
            if not each.settled:
                copy = open_copy(each.points.prepared, centre, self.report, self.machine)
                if copy is None:
                    return
                centre = copy.centre
                each.copy = copy if copy.usable else None
                each.settled = True
                if each.copy is not None:
                    each.segment.release()
