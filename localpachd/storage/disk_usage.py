"""The bytes that chunks take on the disk, counted as they change. Knows no file of theirs."""

import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Bytes on the disk: of `chunks`, of those in the `trash`, and of the `log` of the file of small ones. Small ones
    count among the chunks as long as their rows exist, also in the trash."""

    chunks: int
    trash: int
    log: int


class ByteCounts:
    """The bytes of files, and of those in the trash. Thread-safe. They are right once they were `set`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept = self._trash = 0

    def set(self, kept: int, trash: int) -> None:
        """Begins with these numbers of bytes."""
        with self._lock:
            self._kept, self._trash = kept, trash

    def add(self, kept: int = 0, trash: int = 0) -> None:
        """Adds bytes, or takes negative ones away."""
        with self._lock:
            self._kept += kept
            self._trash += trash

    @property
    def kept(self) -> int:
        """Bytes that are not in the trash."""
        return self._kept

    @property
    def trash(self) -> int:
        """Bytes in the trash."""
        return self._trash
