"""A gzip-compressed tar that is made file by file and read piece by piece. Knows no files of the server."""

import gzip
import io
import tarfile
import tempfile
import time
from collections.abc import Iterable

_IN_MEMORY = 1 << 20
"""Bytes of a file from which on it waits on the disk until its size is known."""


class TarArchive:
    """The archive; it holds in memory what has not been taken yet."""

    def __init__(self) -> None:
        self._made = io.BytesIO()
        self._gzip = gzip.GzipFile(fileobj=self._made, mode="wb", compresslevel=6)
        self._tar = tarfile.open(fileobj=self._gzip, mode="w|")  # noqa: SIM115

    def add(self, name: str, content: Iterable[str | bytes]) -> None:
        """Adds a file. If making its content fails, nothing of it is added."""
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
            for piece in content:
                file.write(piece.encode(errors="surrogateescape") if isinstance(piece, str) else piece)
            member = tarfile.TarInfo(name)
            member.size, member.mtime = file.tell(), int(time.time())
            file.seek(0)
            self._tar.addfile(member, file)

    def take(self, least: int = 0) -> bytes:
        """The bytes made since the last call; none while there are fewer than `least`."""
        if self._made.tell() < least:
            return b""
        taken = self._made.getvalue()
        self._made.seek(0)
        self._made.truncate()
        return taken

    def close(self) -> None:
        """Ends the archive; its last bytes are still to be taken."""
        self._tar.close()
        self._gzip.close()


def packed(files: Iterable[tuple[str, str | bytes]]) -> bytes:
    """An archive of files, each a name and a content."""
    archive = TarArchive()
    for name, content in files:
        archive.add(name, [content])
    archive.close()
    return archive.take()
