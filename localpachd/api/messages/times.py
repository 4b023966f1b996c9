"""Times as messages: nanoseconds since the epoch <-> Timestamp, seconds <-> Duration. Knows no service."""

from typing import overload

from localpachd.api.schema.schema import Duration, Timestamp

_NANOS = 1_000_000_000
_LAST = (1 << 63) - 1
"""The last moment that the database can hold, in the year 2262."""


@overload
def timestamp(nanoseconds: int) -> Timestamp: ...
@overload
def timestamp(nanoseconds: int | None) -> Timestamp | None: ...
def timestamp(nanoseconds: int | None) -> Timestamp | None:
    """A time as a message; None stays None, which leaves a field unset in a message's constructor."""
    if nanoseconds is None:
        return None
    return Timestamp(seconds=nanoseconds // _NANOS, nanos=nanoseconds % _NANOS)


def nanoseconds(moment: Timestamp) -> int:
    """Nanoseconds since the epoch, UTC; moments beyond those of the database become its first or last. An unset field
    reads as 0: check `HasField` first where that matters."""
    return min(max(moment.seconds * _NANOS + moment.nanos, -_LAST), _LAST)


def duration(seconds: float | None) -> Duration | None:
    """A length of time in seconds as a message; None stays None."""
    if seconds is None:
        return None
    # Both parts of a Duration carry the sign, so the nanoseconds are split without it.
    total = round(seconds * _NANOS)
    sign = -1 if total < 0 else 1
    return Duration(seconds=sign * (abs(total) // _NANOS), nanos=sign * (abs(total) % _NANOS))


def seconds(length: Duration) -> float:
    """A Duration in seconds."""
    return length.seconds + length.nanos / _NANOS
