"""Time for ages of hours and days, which nobody can set while a process runs. Knows no chunks."""

import time

_TOLERATED = 60.0
"""Seconds by which clocks are corrected all the time; smaller than any age that matters here."""


class SteadyClock:
    """The machine's clock as it was when it was last read; from then on it only runs. One thread at a time."""

    def __init__(self) -> None:
        self._offset = _offset()

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return time.monotonic() + self._offset

    def follow(self) -> float:
        """Reads the machine's clock again. Returns the seconds by which it was set since it was last read, 0 for less
        than a minute: times that were taken before are to be moved by as much."""
        offset = _offset()
        step = offset - self._offset
        if abs(step) < _TOLERATED:
            return 0.0
        self._offset = offset
        return step


def _offset() -> float:
    return time.time() - time.monotonic()
