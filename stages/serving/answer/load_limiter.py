"""The room for what is under way: requests, their bytes and their pictures. Belongs to one event loop."""

from __future__ import annotations

from collections import Counter
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
    """Counts what is under way, and refuses what is beyond `most`, and beyond half of it for one client. One alone
    always has room."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()

    @contextmanager
    def room(self, amount: int = 1, client: str = "") -> Iterator[None]:
        """Room for so much. client: "" for one without a share of its own. Raises Refusal if there is none."""
        own, whole = self._taken[client], self._taken.total()
        if (whole and whole + amount > self._most) or (client and own and own + amount > self._most // 2):
            raise service_busy()
        self._taken[client] += amount
        try:
            yield
        finally:
            self._taken.subtract({client: amount})
            self._taken = +self._taken  # without those that have none
