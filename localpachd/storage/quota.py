"""The bytes that chunks take on the disk, the most that a root may hold, and the room that is left. Deletes nothing."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from localpachd.errors import OverQuota

_REMEMBERED = 120.0
"""Seconds since a refusal in which the trash is emptied and swept for."""
_FRESH = 1.0
"""Seconds in which the bytes of databases are not read again, but counted on."""


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Bytes on the disk: of `chunks`, of those in the `trash`, and of the `log` of the file of small ones. Small ones
    count among the chunks as long as their rows exist, also in the trash."""

    chunks: int
    trash: int
    log: int


class ByteCounts:
    """The bytes of files that are `kept`, and of those in the `trash`. Thread-safe. Right once they were `set`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.kept = self.trash = 0

    def set(self, kept: int, trash: int) -> None:
        """Begins with these numbers of bytes."""
        with self._lock:
            self.kept, self.trash = kept, trash

    def add(self, kept: int = 0, trash: int = 0) -> None:
        with self._lock:
            self.kept += kept
            self.trash += trash


class Quota:
    """A quota of `limit` bytes, 0 for no limit. `used` reads the bytes that are in use, in microseconds.
    Thread-safe."""

    def __init__(self, limit: int = 0, used: Callable[[], int] = lambda: 0) -> None:
        self.limit = limit
        self._used = used
        self._lock = threading.Lock()
        self._read = self._written = 0
        self._at = self._refused = float("-inf")

    @property
    def reached(self) -> bool:
        """Whether something was refused lately."""
        return time.monotonic() - self._refused < _REMEMBERED

    def lacks(self, size: int) -> bool:
        """Whether there is no room for so many bytes more."""
        return self.limit > 0 and self._bytes() + size > self.limit

    def wrote(self, size: int) -> None:
        """Counts bytes that were written and that `used` may not show yet."""
        if self.limit:
            with self._lock:
                self._written += size

    def refusal(self) -> OverQuota:
        """The error for what lacks room."""
        self._refused = time.monotonic()
        return OverQuota(
            f"the server's quota of {_said(self.limit)} is used up ({_said(self._bytes())} are stored): delete files "
            "or repos, let it squash old commits (--retention), or raise --quota"
        )

    def forget(self) -> None:
        """Reads the bytes again at the next question, as after something was deleted."""
        self._at = float("-inf")

    def _bytes(self) -> int:
        with self._lock:
            now = time.monotonic()
            if now - self._at > _FRESH:
                self._read, self._written, self._at = self._used(), 0, now
            return self._read + self._written


def _said(size: int) -> str:
    """Bytes in the unit in which people give them."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} bytes"
