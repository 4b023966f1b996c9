"""The disk of the server's root: writes that find no room on it fail with one error, and are remembered for a while.

A file keeps some room for the steps that free more: they may use it up.
"""

import errno
import logging
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from localpachd import durable_files
from localpachd.errors import NoSpace

T = TypeVar("T")

_REMEMBERED = 10.0
"""Seconds. Work that waits for room tries again more often."""

LEAST = 1 << 20
"""A disk with fewer free bytes counts as full."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_PRIMARY = 0xFF
"""The part of an error code of SQLite that names its kind."""

SIZE = 8 << 20
"""Bytes of the reserve: several times what SQLite's log takes of the deletion of a repo with thousands of commits."""

_ROOM = 4 * SIZE
"""Bytes that have to be free without the reserve for it to be made: on a disk that is nearly full, it would be in the
way."""

_LEAST = 1 << 18
"""A reserve of fewer bytes is given up whole."""

_RECENT = 120.0
"""Seconds for which a use of the reserve counts as recent."""

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
        return time.monotonic() - self._used < _RECENT

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


class Disk:
    """The disk that holds a directory, where steps that free room may use a `reserve`. Thread-safe."""

    def __init__(self, root: Path, reserve: DiskReserve | None = None) -> None:
        self._root = root
        self._reserve = reserve
        self._failed = -_REMEMBERED

    @property
    def full(self) -> str:
        """The text of the error if a write found no room lately, or ""."""
        return self.text if time.monotonic() - self._failed < _REMEMBERED else ""

    @property
    def short(self) -> bool:
        """Whether room is needed: a write found none lately, or only in the reserve."""
        return bool(self.full) or (self._reserve is not None and self._reserve.used)

    @property
    def text(self) -> str:
        """The text of the error of a write that finds no room, or no root any more."""
        if not self._root.exists():
            return (
                f"{self._root} is gone: put it back or, if it was moved with all that was acknowledged, start a server "
                "with --root and its new place"
            )
        return f"no space left on the disk of {self._root}: free some"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Raises NoSpace for the errors of writes that find no room, or no root any more."""
        try:
            yield
        except (OSError, sqlite3.OperationalError) as error:
            if not self._is_lack(error):
                raise
            raise self._failure() from error

    def freeing(self, step: Callable[[], T]) -> T:
        """The result of a step that frees room and can be repeated: one that finds no room is tried again with that of
        the reserve. Raises NoSpace if that is not enough."""
        while True:
            try:
                with self.writing():
                    return step()
            except NoSpace:
                if self._reserve is None or not self._reserve.use():
                    raise

    def check(self, reason: str) -> None:
        """Raises NoSpace if this is, or may be, why a program failed for this reason."""
        if os.strerror(errno.ENOSPC) in reason or self.lacks_room():
            raise self._failure()

    def lacks_room(self) -> bool:
        """Whether the disk has next to no room now."""
        try:
            state = os.statvfs(self._root)
        except OSError:
            return False
        return state.f_blocks > 0 and state.f_bavail * state.f_frsize < LEAST

    def _is_lack(self, error: OSError | sqlite3.OperationalError) -> bool:
        if isinstance(error, OSError):
            return error.errno in _FULL or (isinstance(error, FileNotFoundError) and not self._root.exists())
        kind = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
        return kind == sqlite3.SQLITE_FULL or (kind == sqlite3.SQLITE_IOERR and self.lacks_room())

    def _failure(self) -> NoSpace:
        self._failed = time.monotonic()
        return NoSpace(self.text)
