"""What one datum set waits for: its process, its NextDatum calls, its deadline, and orders to stop. Runs nothing."""

import threading
import time
from collections.abc import Callable

from localpachd.worker.tasks import CancelToken


class Cancelled(Exception):
    """The datum set was cancelled; nothing more is wanted of it."""


class Watch:
    """The one condition that every thread of a datum set rings and that the set's own thread waits on.

    `condition` guards whatever the threads share. Used as a context manager around the set.
    """

    def __init__(self, token: CancelToken) -> None:
        self.condition = threading.Condition()
        self._token = token
        self._ended: str | None = None

    def __enter__(self) -> "Watch":
        self._token.attach(self.ring)
        return self

    def __exit__(self, *_: object) -> None:
        self._token.attach(None)

    def ring(self) -> None:
        """Says that something may have changed."""
        with self.condition:
            self.condition.notify_all()

    def end(self, reason: str) -> None:
        """Ends the present attempt with this reason; the first one counts."""
        with self.condition:
            if self._ended is None:
                self._ended = reason
            self.condition.notify_all()

    def begin(self, datum: str) -> None:
        """Starts an attempt, which can from now on be ended from outside."""
        self._ended = None
        self._token.attempt(datum, self.end)

    def finish(self) -> None:
        """The attempt is over; nobody can end it any more."""
        self._token.attempt("", None)

    def check(self) -> None:
        """Raises Cancelled when the set was cancelled."""
        if self._token.cancelled:
            raise Cancelled

    def wait(self, ready: Callable[[], bool], deadline: float | None = None) -> str | None:
        """Waits for `ready` (called with the condition held): None, or the reason that came before it.

        `deadline` is on the monotonic clock. Raises Cancelled.
        """
        with self.condition:
            while True:
                self.check()
                if self._ended is not None:
                    return self._ended
                if ready():
                    return None
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return TIMED_OUT
                self.condition.wait(left)


TIMED_OUT = "datum timed out: it ran longer than the pipeline's datum_timeout"
