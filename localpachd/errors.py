"""The one error tree of localpachd. `api.doors.status` maps each kind to a gRPC status code; no other room knows the
codes.

    PachError                 UNKNOWN (what the real server sends for an untyped error)
    ├── InvalidArgument       INVALID_ARGUMENT
    ├── NotFound              NOT_FOUND
    ├── AlreadyExists         ALREADY_EXISTS
    ├── FailedPrecondition    FAILED_PRECONDITION
    ├── Unavailable           UNAVAILABLE
    ├── NoSpace               RESOURCE_EXHAUSTED
    ├── OverQuota             RESOURCE_EXHAUSTED
    ├── DataLoss              DATA_LOSS
    ├── TooMany               RESOURCE_EXHAUSTED
    ├── Unimplemented         UNIMPLEMENTED
    └── PachdCrash            INTERNAL

Messages are Pachyderm 2.7's own texts wherever clients can see them; `api.doors.later_refusals` has those of 2.12.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class PachError(Exception):
    """A failure whose message is meant for the client."""


class InvalidArgument(PachError):
    """The request itself is malformed."""


class NotFound(PachError):
    """An object named in the request does not exist."""


class AlreadyExists(PachError):
    """The object that the request would create exists."""


class FailedPrecondition(PachError):
    """The state of the server forbids the request now."""


class Unavailable(PachError):
    """Something the request needs is not finished yet: `resource`, by type, name and description."""

    def __init__(self, message: str, resource: tuple[str, str, str] | None = None) -> None:
        super().__init__(message)
        self.resource = resource


class NoSpace(PachError):
    """The server's disk has no room for what the request, or a job, writes."""


class OverQuota(PachError):
    """What the request, or a job, writes would exceed the server's quota."""


class DataLoss(PachError):
    """Stored bytes are damaged or missing."""


class TooMany(PachError):
    """The server does as much at once as it can, or may."""


class Unimplemented(PachError):
    """A call that localpachd does not serve."""


class PachdCrash(PachError):
    """A request on which a real pachd crashes."""


@contextmanager
def prefixed(text: str, kind: type[PachError] = PachError, plain: bool = False) -> Iterator[None]:
    """Puts a text and a colon before the message of an error of this kind that is raised within the block. The error
    keeps its class or, if `plain`, becomes a PachError."""
    try:
        yield
    except kind as error:
        raise (PachError if plain else type(error))(f"{text}: {error}") from error
