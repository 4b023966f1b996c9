"""Room on a disk that is kept for the steps that free some: a file that they may use up. Knows no step."""

import logging
import os
import shutil
import threading
import time
from pathlib import Path

from localpachd import durable_files

SIZE = 8 << 20
"""Bytes: several times what SQLite's log takes of the deletion of a repo with thousands of commits."""

_ROOM = 4 * SIZE
"""Bytes that have to be free without the file for it to be made: on a disk that is nearly full, it would be in the
way."""

_LEAST = 1 << 18
"""A file of fewer bytes is given up whole."""

_REMEMBERED = 120.0
"""Seconds for which a use counts as recent."""

_log = logging.getLogger(__name__)


class DiskReserve:
    """A file of SIZE bytes on the disk whose room it keeps. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._used = float("-inf")

    @property
    def used(self) -> bool:
        """Whether some of it was used lately."""
        return time.monotonic() - self._used < _REMEMBERED

    def use(self) -> bool:
        """Frees half of what is left; False if nothing is. In halves, since others may take what is freed before the
        step that needs it."""
        with self._lock:
            size = self._size()
            if not size:
                return False
            self._used = time.monotonic()
            with self._path.open("r+b") as file:
                file.truncate(size // 2 if size >= 2 * _LEAST else 0)
                os.fsync(file.fileno())  # some file systems free nothing before
            return True

    def restore(self) -> None:
        """Makes the file whole if there is room enough for it."""
        with self._lock:
            try:
                size = self._size()
                if size >= SIZE or shutil.disk_usage(self._path.parent).free + size < _ROOM:
                    return
                durable_files.replace(self._path, os.urandom(SIZE))  # zeros may take no room
            except OSError as error:
                _log.warning("cannot keep room for deletions in %s: %s", self._path, error.strerror or error)

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0
