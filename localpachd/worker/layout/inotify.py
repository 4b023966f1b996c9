"""Tells when a file is opened and closed, with Linux's inotify(7). Nothing but its system calls."""

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator

OPENED = 0x20
_CLOSED = 0x08 | 0x10  # by a writer, by a reader
_LOST = 0x4000

_HEADER = struct.Struct("iIII")  # watch, what happened, cookie, length of the name that follows
_BLOCK = 64 << 10


class Inotify:
    """Watches on files. Raises OSError where the system has no inotify or no more of it."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._libc, "inotify_init1"):
            raise OSError("this system has no inotify")
        self.fileno: int = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def watch(self, path: str) -> int:
        """Starts to watch a file for being opened and closed; returns the number that its events carry.

        Without the events of closing, the kernel would merge two openings of a file in a row into one event.
        """
        return self._checked(self._libc.inotify_add_watch(self.fileno, os.fsencode(path), OPENED | _CLOSED))

    def events(self) -> Iterator[tuple[int, int]]:
        """The (watch, mask) pairs that have come up, without waiting. Raises OSError when the kernel dropped some."""
        try:
            data = os.read(self.fileno, _BLOCK)
        except BlockingIOError:
            return
        position = 0
        while position < len(data):
            watch, mask, _, length = _HEADER.unpack_from(data, position)
            position += _HEADER.size + length
            if mask & _LOST:
                raise OSError("more events of files at once than the system keeps (fs.inotify.max_queued_events)")
            yield watch, mask

    def forget(self) -> None:
        """Drops the events that have come up: each watched file that was deleted has left one, and thousands of these
        may be more than the system keeps."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fileno, _BLOCK):
                pass

    def close(self) -> None:
        """Ends all watches."""
        os.close(self.fileno)

    def _checked(self, result: int) -> int:
        if result < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return result
