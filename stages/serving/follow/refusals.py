"""The one error of the service over HTTP: a status, a code for programs and a sentence for people."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any


class Refusal(Exception):
    """A request that is not answered. wait: the seconds after which it may be, for 429 and 503. pictures: those of
    several that are the reason, by their places in the question, with the reason of each."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        wait: int | None = None,
        pictures: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.wait = wait
        self.pictures = pictures

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
        named = [{"picture": place, "message": message} for place, message in self.pictures.items()]
        return {"error": {"code": self.code, "message": self.message, **({"pictures": named} if named else {})}}


def bad_request(message: str) -> Refusal:
    """A request that is not valid."""
    return Refusal(400, "bad-request", message)


def library_moved() -> Refusal:
    """Others have changed what a change was reviewed on."""
    return Refusal(
        409,
        "moved",
        "the library has changed since this was shown, so nothing was changed: look at it again as soon as the "
        "pipelines have caught up",
    )


def service_busy() -> Refusal:
    """Too many requests wait already."""
    return Refusal(429, "busy", "the service has as many requests as it can take: try again in a moment", 1)
