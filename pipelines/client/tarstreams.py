"""Tar archives read piece by piece, from a stream or a file."""

import io
import tarfile
from collections.abc import Iterable, Iterator
from typing import Any

_BUFFER = 1 << 20


def reading(pieces: Iterable[bytes]) -> tarfile.TarFile:
    """The archive in a stream of bytes; its members can be read once, in order."""
    return opened(_Stream(iter(pieces)))


def opened(file: Any) -> tarfile.TarFile:
    """The archive in a binary file or, if that cannot seek, in a stream."""
    return tarfile.open(fileobj=file, mode="r:" if file.seekable() else "r|", bufsize=_BUFFER)  # the caller closes it


def members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members of an archive, of which tarfile would otherwise keep every one."""
    while (member := archive.next()) is not None:
        archive.members.clear()  # type: ignore[attr-defined]  # public, but not in typeshed
        yield member


class _Stream(io.RawIOBase):
    """Pieces of bytes as a file that can be read once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        taken = self._left[: len(buffer)]
        self._left = self._left[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)
