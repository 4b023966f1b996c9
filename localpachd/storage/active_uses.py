"""Work in progress on stored bytes, which a sweep must not delete meanwhile. Deletes nothing itself."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ActiveUses:
    """The work in progress. Thread-safe.

    Code that stores chunks to which no layer refers yet, or reads a snapshot for long, does so in a `with one()`.

    Time is counted in generations, which sweeps begin: clocks may be set, and file systems have clocks of their own.
    The first is `generation`, to be later than any that stored chunks have.
    """

    def __init__(self, generation: int = 1) -> None:
        self._lock = threading.Lock()
        self._generation = generation
        self._begun: dict[int, int] = {}  # the generation in which each piece of work began
        self._next = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """A piece of work, from before its first read or write until it needs no stored bytes any more."""
        with self._lock:
            number = self._next
            self._next += 1
            self._begun[number] = self._generation
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

    @property
    def generation(self) -> int:
        """The present generation. A chunk that is put now is at least as young."""
        with self._lock:
            return self._generation

    def advance(self, generation: int) -> int:
        """Begins a later generation. Returns the oldest one in which work in progress began, or the one that has just
        ended: nothing refers to a chunk from before it, unless it does so already."""
        with self._lock:
            ended, self._generation = self._generation, generation
            return min((*self._begun.values(), ended))
