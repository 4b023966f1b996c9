"""The output of a datum stored in a thread of its own, while the next datum runs. Knows neither datums nor files."""

import threading
from collections.abc import Callable

from localpachd.worker.tasks import DatumOutcome, DatumResult


class OutputWriter:
    """Stores one datum's output at a time. `done` is called with each result, in that thread."""

    def __init__(self, done: Callable[[DatumResult], None]) -> None:
        self._done = done
        self._thread: threading.Thread | None = None
        self._result: DatumResult | None = None
        self._failure: BaseException | None = None

    def begin(self, store: Callable[[], DatumResult]) -> None:
        """Calls `store` in a thread; the one before must be settled."""
        self._result = self._failure = None
        self._thread = threading.Thread(target=self._run, args=(store,), name="output", daemon=True)
        self._thread.start()

    def settle(self) -> bool:
        """Waits for what has begun, if anything has: whether that datum was processed. Raises what it raised."""
        if not self._joined():
            return True
        if self._failure is not None:
            raise self._failure
        assert self._result is not None
        return self._result.state == DatumOutcome.PROCESSED

    def close(self) -> None:
        """Waits for what has begun, whatever became of it."""
        self._joined()

    def _joined(self) -> bool:
        thread, self._thread = self._thread, None
        if thread is None:
            return False
        thread.join()
        return True

    def _run(self, store: Callable[[], DatumResult]) -> None:
        try:
            self._result = store()
            self._done(self._result)
        except BaseException as failure:  # raised by `settle`, whatever it is
            self._failure = failure
