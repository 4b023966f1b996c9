"""The bounds of the service: what one request may be, and what may be under way together. Tests pass smaller ones."""

from __future__ import annotations

from dataclasses import dataclass


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
