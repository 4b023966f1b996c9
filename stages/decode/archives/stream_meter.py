"""Bounds on reading an archive: how many bytes its own descriptions may take, and how far it may expand.

Knows no archive format.
"""

from __future__ import annotations

import io
from typing import BinaryIO

from stages.decode.archives.archive_member import BadArchive
from stages.record.file_limits import FileLimits


def check_totals(count: int, expanded: int, limits: FileLimits, size: int) -> None:
    """Raises BadArchive if an archive of `size` bytes may not have so many members, or so many bytes in them."""
    if count > limits.members:
        raise BadArchive(f"more than {limits.members:,} members")
    if expanded > limits.expansion(size):
        raise BadArchive(f"expands to more than {limits.expansion(size):,} bytes")


class StreamMeter:
    """A stream that gives at most `allowance` more bytes and refuses to seek past `farthest`; raises BadArchive.

    The archive modules read a member's description in one piece, as long as the archive states: a hostile one states
    gigabytes. `last` is the result of the latest read.
    """

    def __init__(self, raw: BinaryIO, allowance: int, farthest: int) -> None:
        self.raw = raw
        self.allowance = allowance
        self.farthest = farthest
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        if size > self.allowance:
            raise BadArchive("descriptions of members that are too large")
        self.last = self.raw.read(size if size >= 0 else self.allowance)
        self.allowance -= len(self.last)
        return self.last

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._check(offset)
        return self.raw.seek(offset, whence)

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.raw.tell()

    def check_position(self) -> None:
        """Raises BadArchive if the stream under this one has been read past `farthest`."""
        self._check(self.raw.tell())

    def _check(self, offset: int) -> None:
        if offset > self.farthest:
            raise BadArchive(f"expands to more than {self.farthest:,} bytes")
