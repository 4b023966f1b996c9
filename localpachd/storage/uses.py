"""Work in progress on stored bytes, which a sweep must not delete meanwhile. Deletes nothing itself."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Uses:
    """The work in progress. Thread-safe.

    Code that stores chunks to which no layer refers yet, or reads a snapshot for long, does so in a `with one()`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: dict[int, float] = {}
        self._next = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """A piece of work, from before its first read or write until it needs no stored bytes any more."""
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
        """A point in time; see `all_after`."""
        with self._lock:
            return self._next

    def all_after(self, mark: int) -> bool:
        """Whether all work in progress began after the mark was taken."""
        with self._lock:
            return min(self._begun, default=self._next) >= mark

    def since(self) -> float:
        """The start of the oldest work in progress, in seconds since the epoch; now, if there is none."""
        with self._lock:
            return min((*self._begun.values(), time.time()))
