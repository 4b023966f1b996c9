"""Who is at work on stored bytes: what a sweep must not take away meanwhile. Deletes nothing."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Uses:
    """The work in progress. Thread-safe.

    Whoever stores chunks that no layer refers to yet, or reads a snapshot for long, is at work in a `with one()`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: dict[int, float] = {}
        self._next = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """A piece of work, from before its first look or write until it needs nothing more."""
        with self._lock:
            number = self._next
            self._next += 1
            self._begun[number] = time.time()
        try:
            yield
        finally:
            with self._lock:
                del self._begun[number]

    def mark(self) -> int:
        """A place in time; see `all_after`."""
        with self._lock:
            return self._next

    def all_after(self, mark: int) -> bool:
        """Whether all work that is in progress began after the mark was taken."""
        with self._lock:
            return min(self._begun, default=self._next) >= mark

    def since(self) -> float:
        """When the oldest work in progress began, in seconds since the epoch; now, if there is none."""
        with self._lock:
            return min((*self._begun.values(), time.time()))
