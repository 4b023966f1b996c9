"""The one error of the service over HTTP: a status, a code for programs and a sentence for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Refusal(Exception):
    """A request that is not answered. wait: the seconds after which it may be, for 429 and 503."""

    def __init__(self, status: int, code: str, message: str, wait: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.wait = wait

    @property
    def headers(self) -> Mapping[str, str]:
        """What tells the client what to do next."""
        known = {
            "Retry-After": None if self.wait is None else str(self.wait),
            "WWW-Authenticate": "Bearer" if self.status == 401 else None,
        }
        return {name: value for name, value in known.items() if value is not None}

    def as_data(self) -> Mapping[str, Any]:
        """The body of the response."""
        return {"error": {"code": self.code, "message": self.message}}


def bad_request(message: str) -> Refusal:
    """A request that is not valid."""
    return Refusal(400, "bad-request", message)


def service_busy() -> Refusal:
    """Too many requests wait already."""
    return Refusal(429, "busy", "the service has as many requests as it can take: try again in a moment", 1)
