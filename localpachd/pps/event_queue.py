"""A queue of events that several threads report and one thread reads in batches. Knows no events."""

import queue
import time
from collections.abc import Iterator
from enum import Enum, auto
from typing import Generic, TypeVar

T = TypeVar("T")

_CAPACITY = 10_000
_SECONDS = 0.2


class _End(Enum):
    END = auto()


class EventQueue(Generic[T]):
    """The events of `producers` threads, each of which calls `close` at its end. `batches` must be read to the end.

    A producer that is 10,000 events ahead of the reader waits for it: user code that says more than can be stored is
    slowed down.
    """

    def __init__(self, producers: int = 1) -> None:
        self._events: queue.Queue[T | _End] = queue.Queue(_CAPACITY)
        self._open = producers

    def put(self, event: T) -> None:
        """Reports an event."""
        self._events.put(event)

    def close(self) -> None:
        """Says that one producer reports no more."""
        self._events.put(_End.END)

    def batches(self) -> Iterator[list[T]]:
        """All events in order, each with those that follow it within 0.2 s, until every producer has closed."""
        while self._open:
            batch = self._batch()
            if batch:
                yield batch

    def _batch(self) -> list[T]:
        found: list[T] = []
        deadline: float | None = None
        while self._open and len(found) < _CAPACITY:
            try:
                event = self._events.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            deadline = deadline or time.monotonic() + _SECONDS
            if event is _End.END:
                self._open -= 1
            else:
                found.append(event)
        return found
