"""A queue of events that several threads fill and one thread reads in batches. Knows nothing of the events."""

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
    """The events of `producers` threads, each of which calls `close` when it ends. `batches` must be read to the end.

    When 10,000 events are waiting, producers block: user code that prints faster than lines can be stored slows down.
    """

    def __init__(self, producers: int = 1) -> None:
        self._events: queue.Queue[T | _End] = queue.Queue(_CAPACITY)
        self._open = producers

    def put(self, event: T) -> None:
        self._events.put(event)

    def close(self) -> None:
        """Ends the events of one producer."""
        self._events.put(_End.END)

    def batches(self) -> Iterator[list[T]]:
        """All events in order until every producer has closed: each with those that follow within 0.2 s."""
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
