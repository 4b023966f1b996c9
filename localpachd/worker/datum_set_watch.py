"""The condition on which a datum set waits: for its process, a NextDatum call, its deadline, or a cancellation.

Runs nothing.
"""

import threading
import time
from collections.abc import Callable

from localpachd.worker.tasks import CancelToken


class CancellationError(Exception):
    """The datum set was cancelled: no more results are wanted."""


class DatumSetWatch:
    """The one condition that every thread of a datum set notifies and that the set's own thread waits on.

    `condition` guards the state that the threads share. Used as a context manager around the set; a cancellation also
    calls `stopping`.
    """

    def __init__(self, token: CancelToken, stopping: Callable[[], None]) -> None:
        self.condition = threading.Condition()
        self._token = token
        self._stopping = stopping
        self._ended: str | None = None

    def __enter__(self) -> "DatumSetWatch":
        self._token.attach(self._cancelled)
        return self

    def __exit__(self, *_: object) -> None:
        self._token.attach(None)

    def _cancelled(self) -> None:
        self.notify()
        self._stopping()

    def share(self, condition: threading.Condition) -> None:
        """Waits on another condition from now on: that of a process which outlives the set. To be called while nobody
        waits."""
        self.condition = condition

    def notify(self) -> None:
        """Wakes the waiting thread: something may have changed."""
        with self.condition:
            self.condition.notify_all()

    def end(self, reason: str) -> None:
        """Ends the current attempt with this reason; the first reason counts."""
        with self.condition:
            if self._ended is None:
                self._ended = reason
            self.condition.notify_all()

    def begin(self, datum: str) -> None:
        """Starts an attempt, which can be ended from outside from now on."""
        self._ended = None
        self._token.attempt(datum, self.end)

    def finish(self) -> None:
        """Finishes the attempt: it can no longer be ended from outside."""
        self._token.attempt("", None)

    def check(self) -> None:
        """Raises CancellationError if the set was cancelled."""
        if self._token.cancelled:
            raise CancellationError

    def over(self, deadline: float | None) -> str | None:
        """The reason why the attempt is over, or None. `deadline` is on the monotonic clock. Raises
        CancellationError."""
        self.check()
        if self._ended is None and deadline is not None and time.monotonic() >= deadline:
            return TIMED_OUT
        return self._ended

    def wait(self, ready: Callable[[], bool], deadline: float | None = None) -> str | None:
        """Waits for `ready` (called with the condition held): None, or the reason that ended the attempt first.

        Raises CancellationError.
        """
        with self.condition:
            while True:
                over = self.over(deadline)
                if over in (None, TIMED_OUT) and ready():
                    return None
                if over is not None:
                    return over
                self.condition.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))


TIMED_OUT = "datum timed out: it ran longer than the pipeline's datum_timeout"
