"""Who opens and closes a file, told by Linux's inotify(7). Nothing but its system calls."""

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

CLOSED_WRITER = 0x08
CLOSED_READER = 0x10
OPENED = 0x20

_HEADER = struct.Struct("iIII")  # watch, what happened, cookie, length of the name that follows
_BLOCK = 64 << 10


class Inotify:
    """Watches on files. Raises OSError where the system has no inotify or no more of it."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._libc, "inotify_init1"):
            raise OSError("this system has no inotify")
        self.fileno: int = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def watch(self, path: Path) -> int:
        """Starts to watch a file for being opened and closed; returns the number that its events carry."""
        wanted = OPENED | CLOSED_READER | CLOSED_WRITER
        return self._checked(self._libc.inotify_add_watch(self.fileno, os.fsencode(path), wanted))

    def events(self) -> Iterator[tuple[int, int]]:
        """The (watch, mask) pairs that have come up, without waiting."""
        try:
            data = os.read(self.fileno, _BLOCK)
        except BlockingIOError:
            return
        position = 0
        while position < len(data):
            watch, mask, _, length = _HEADER.unpack_from(data, position)
            position += _HEADER.size + length
            yield watch, mask

    def close(self) -> None:
        """Ends all watches."""
        os.close(self.fileno)

    def _checked(self, result: int) -> int:
        if result < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return result
