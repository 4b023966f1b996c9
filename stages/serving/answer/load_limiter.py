"""The room for what is under way: requests, their bytes and their pictures. Belongs to one event loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stages.serving.answer.service_limits import ServiceLimits
from stages.serving.follow.refusals import service_busy


class LoadLimiter:
    """Room for requests, for the bytes of these and of their answers, which a slow client holds in memory, and for the
    pictures that are decoded."""

    def __init__(self, bounds: ServiceLimits) -> None:
        self.requests = LoadBudget(bounds.requests)
        self.bytes = LoadBudget(bounds.bytes)
        self.pictures = LoadBudget(bounds.pictures)


class LoadBudget:
    """Counts what is under way, and refuses what is beyond `most`. One alone always has room."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0

    @contextmanager
    def room(self, amount: int = 1) -> Iterator[None]:
        """Room for so much. Raises Refusal if there is none."""
        if self._taken and self._taken + amount > self._most:
            raise service_busy()
        self._taken += amount
        try:
            yield
        finally:
            self._taken -= amount
