"""The disk of the server's root: writes that find no room on it fail with one error, and are remembered for a while.

Knows no files.
"""

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from localpachd.disk_reserve import DiskReserve
from localpachd.errors import NoSpace

T = TypeVar("T")

_REMEMBERED = 10.0
"""Seconds. Work that waits for room tries again more often."""

_SHORT = 1 << 20
"""A disk with fewer free bytes counts as full."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_PRIMARY = 0xFF
"""The part of an error code of SQLite that names its kind."""


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
        """The text of the error of a write that finds no room."""
        return f"no space left on the disk of {self._root}: free some"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Raises NoSpace for the errors of writes that find no room."""
        try:
            yield
        except (OSError, sqlite3.OperationalError) as error:
            if not self._lacks_room(error):
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
        if os.strerror(errno.ENOSPC) in reason or self._is_short():
            raise self._failure()

    def _lacks_room(self, error: OSError | sqlite3.OperationalError) -> bool:
        if isinstance(error, OSError):
            return error.errno in _FULL
        kind = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
        return kind == sqlite3.SQLITE_FULL or (kind == sqlite3.SQLITE_IOERR and self._is_short())

    def _is_short(self) -> bool:
        try:
            state = os.statvfs(self._root)
        except OSError:
            return False
        return state.f_blocks > 0 and state.f_bavail * state.f_frsize < _SHORT

    def _failure(self) -> NoSpace:
        self._failed = time.monotonic()
        return NoSpace(self.text)
