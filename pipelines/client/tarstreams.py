"""Tar archives read from a stream, piece by piece."""

import io
import tarfile
from collections.abc import Iterable, Iterator
from typing import Any


def reading(pieces: Iterable[bytes]) -> tarfile.TarFile:
    """The archive in a stream of bytes; its members can be read once, in order."""
    return tarfile.open(fileobj=_Stream(iter(pieces)), mode="r|")  # the caller closes it


class _Stream(io.RawIOBase):
    """Pieces of bytes as a file that can be read once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = piece
        taken = self._left[: len(buffer)]
        self._left = self._left[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)
