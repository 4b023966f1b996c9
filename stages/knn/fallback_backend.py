"""A backend that runs on a GPU, and the processor that takes its place: a shortage of memory makes it ask for fewer
queries at a time, any other failure ends its use. Knows no metric, and no library of GPUs.
"""

import threading
from collections.abc import Callable

import numpy as np

from stages.datum.contract import StageError
from stages.datum.visible_gpus import notice
from stages.knn.backend import Backend, Distances, MeasuringBackend, RoundingBound, Rows, Vectors
from stages.knn.blas_threads import others_turn

_FEWEST = 64
"""Queries at once below which a shortage is not one of the queries."""


class FallbackBackend:
    """A backend that was examined on the GPU. `processor` makes the one in its place, None if that is not wanted: then
    failures raise StageError. `report` takes a line for the log. measures: whether the GPU's true distances are used.

    May be called from several threads: the GPU answers one at a time, and meanwhile the others compute."""

    def __init__(
        self,
        device: Backend,
        processor: Callable[[], Backend] | None,
        report: Callable[[str], None],
        measures: bool = False,
    ) -> None:
        self.name = device.name
        self.rounding: RoundingBound = device.rounding
        self.concurrent = False
        self._device: Backend | None = device
        self._make_processor = processor
        self._processor: Backend | None = None
        self._report = report
        self._measures = measures
        self._most: int | None = None
        self._one_call = threading.RLock()

    def candidates(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        """See Backend.candidates. Raises StageError if the GPU fails and nothing may take its place."""
        distances, rows, _ = self._answered(queries, count, measured=False)
        return distances, rows

    def measured(self, queries: Vectors, count: int) -> tuple[Distances, Rows, Distances | None]:
        """See MeasuringBackend.measured; errors are those of `candidates`."""
        return self._answered(queries, count, measured=self._measures)

    def _answered(self, queries: Vectors, count: int, measured: bool) -> tuple[Distances, Rows, Distances | None]:
        distances = np.empty((len(queries), count), np.float32)
        rows = np.empty((len(queries), count), np.int64)
        true = np.empty_like(distances) if measured else None
        start = 0
        while start < len(queries):
            some = slice(start, start + (self._most or len(queries)))
            found = self._asked(queries[some], count, measured)
            if found is None:
                continue
            distances[some], rows[some], part = found
            if true is None or part is None:
                true = None
            else:
                true[some] = part
            start = some.stop
        return distances, rows, true

    def give_up(self, why: str) -> None:
        """Goes on with the processor, and says so; does nothing if it does already. Raises StageError if that is not
        wanted."""
        if self._processor is not None:
            return
        if self._make_processor is None:
            raise StageError(
                f"BACKEND={self.name.partition(' ')[0]} does not work here ({why}); use BACKEND=auto or faiss"
            )
        self._report(notice(f"it cannot be used for this search ({why}): searching on the CPU instead"))
        self._device, self._processor = None, self._make_processor()
        self.rounding = _loosest(self.rounding, self._processor.rounding)
        self.name = self._processor.name

    def _asked(self, queries: Vectors, count: int, measured: bool) -> tuple[Distances, Rows, Distances | None] | None:
        """The candidates; None if the number of queries at once has been halved, or the processor has taken over."""
        if self._processor is not None:
            return (*self._processor.candidates(queries, count), None)
        with others_turn(), self._one_call:
            if self._device is None:
                return None
            try:
                if measured and isinstance(self._device, MeasuringBackend):
                    return self._device.measured(queries, count)
                return (*self._device.candidates(queries, count), None)
            except Exception as failure:  # of CUDA, CuPy and Numba, some of no kind of their own
                if short(failure) and len(queries) > _FEWEST:
                    self._halve(len(queries), failure)
                else:
                    self.give_up(line(failure))
                return None

    def _halve(self, number: int, failure: BaseException) -> None:
        if self._most is None:
            few = f"its memory is too small for {number} queries at a time ({line(failure)}): asking fewer"
            self._report(notice(few))
        self._most = -(-number // 2)


def short(failure: BaseException) -> bool:
    """Whether a failure is a shortage of memory, by its kind or its words."""
    words = str(failure).lower()
    return isinstance(failure, MemoryError) or any(
        each in words for each in ("out of memory", "out_of_memory", "bad_alloc")
    )


def line(failure: BaseException) -> str:
    """A failure in one line."""
    return " ".join(f"{type(failure).__name__}: {failure}".split())


def _loosest(one: RoundingBound, other: RoundingBound) -> RoundingBound:
    """A bound that holds for the answers of both."""
    return RoundingBound(max(one.relative, other.relative), max(one.absolute, other.absolute))
