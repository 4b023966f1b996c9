"""The bounds of the service: what one request may be, and the room for what is under way together, which is requests,
their bytes and their pictures. Belongs to one event loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stages.serving.follow.refusals import service_busy


@dataclass(frozen=True)
class ServiceLimits:
    """body_bytes: of one request. requests, bytes, pictures: under way together. idle: seconds for which a body may
    bring nothing, by which it may be late at `rate` bytes a second, and for which a client may not take any of its
    response. whole: seconds for a whole body. linger: seconds for which the rest of a refused body is read, up to
    `discarded` bytes, so that its sender comes to read why. answer: seconds for the answer to one question. guess:
    seconds after which a wrong token is refused."""

    body_bytes: int = 64 << 20
    requests: int = 512
    bytes: int = 512 << 20
    pictures: int = 2048
    idle: float = 30.0
    whole: float = 300.0
    rate: int = 1 << 10
    linger: float = 60.0
    discarded: int = 256 << 20
    answer: float = 60.0
    guess: float = 1.0


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
