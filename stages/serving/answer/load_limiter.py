"""The room for what is under way: requests, their bytes and their pictures. Belongs to one event loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stages.serving.answer.service_limits import ServiceLimits
from stages.serving.follow.refusals import service_busy


class LoadLimiter:
    """Counts what is under way, and refuses what is beyond the bounds. One request alone always has room."""

    def __init__(self, bounds: ServiceLimits) -> None:
        self._bounds = bounds
        self.requests = 0
        self.bytes = 0
        self.pictures = 0

    @contextmanager
    def request(self, bytes: int) -> Iterator[None]:
        """Room for a request of so many bytes. Raises Refusal if there is none."""
        if self.requests >= self._bounds.requests or (self.bytes and self.bytes + bytes > self._bounds.bytes):
            raise service_busy()
        self.requests += 1
        self.bytes += bytes
        try:
            yield
        finally:
            self.requests -= 1
            self.bytes -= bytes

    @contextmanager
    def answer(self, bytes: int) -> Iterator[None]:
        """Room for an answer of so many bytes, which a slow client holds in memory. Raises Refusal if there is none."""
        if self.bytes and self.bytes + bytes > self._bounds.bytes:
            raise service_busy()
        self.bytes += bytes
        try:
            yield
        finally:
            self.bytes -= bytes

    @contextmanager
    def asked(self, pictures: int) -> Iterator[None]:
        """Room for so many pictures, which are decoded. Raises Refusal if there is none."""
        if self.pictures and self.pictures + pictures > self._bounds.pictures:
            raise service_busy()
        self.pictures += pictures
        try:
            yield
        finally:
            self.pictures -= pictures
