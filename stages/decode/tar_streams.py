"""Tar archives read piece by piece, from a stream or a file."""

import tarfile
from collections.abc import Iterable, Iterator
from typing import Protocol

PIECE = 1 << 20


class SequentialFile(Protocol):
    """A binary file that is read from its beginning to its end."""

    def read(self, size: int, /) -> bytes:
        """So many bytes, fewer only at the end."""

    def read1(self, size: int, /) -> bytes:
        """At most so many bytes, none only at the end."""

    def tell(self) -> int:
        """The place of the next byte."""

    def seek(self, place: int, /) -> int:
        """Goes to a later place."""


def open_archive(file: SequentialFile) -> tarfile.TarFile:
    """The archive in a file; its members can be read once, in order."""
    # Not the mode "r|", in which each byte is copied five times.
    return tarfile.open(fileobj=file, mode="r:")  # type: ignore[call-overload, no-any-return]  # the caller closes it


def members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members of an archive, of which tarfile would otherwise keep every one."""
    while (member := archive.next()) is not None:
        archive.members.clear()  # type: ignore[attr-defined]  # public, but not in typeshed
        yield member


def content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    """The content of the member that was taken last. Raises tarfile.ReadError if it is cut off."""
    file: SequentialFile = archive.fileobj  # type: ignore[assignment]  # `open_archive` was given one
    left = member.size if member.isreg() else 0
    while left:
        piece = file.read1(min(left, PIECE))
        if not piece:
            raise tarfile.ReadError("unexpected end of data")
        left -= len(piece)
        yield piece


class ChunkReader:
    """Pieces of bytes as a file that can be read once. Implements Bytes."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._left = memoryview(b"")
        self._place = 0

    def read1(self, size: int) -> bytes:
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._left = memoryview(piece)
        taken, self._left = self._left[:size], self._left[size:]
        self._place += len(taken)
        return bytes(taken)

    def read(self, size: int) -> bytes:
        found = self.read1(size)
        while len(found) < size and (more := self.read1(size - len(found))):
            found += more
        return found

    def tell(self) -> int:
        return self._place

    def seek(self, place: int) -> int:
        while self._place < place and self.read1(place - self._place):
            pass
        return self._place
