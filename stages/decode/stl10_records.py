"""The pictures in STL-10's binary files: records of 3 × 96 × 96 bytes, channel by channel, each column by column.

Knows the layout (https://cs.stanford.edu/~acoates/stl10/) and no files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from stages.decode.stl10 import RECORD, SIDE
from stages.record.framing import Pixels


class ByteStream(Protocol):
    """Bytes in order."""

    def read(self, size: int, /) -> bytes:
        """The next `size` bytes, fewer only at the end."""


def records(head: bytes, stream: ByteStream) -> Iterator[bytes]:
    """Each record's bytes, read one at a time.

    head: bytes already read from the stream, less than a record. Raises EOFError if the stream ends inside a record.
    """
    while record := head + stream.read(RECORD - len(head)):
        head = b""
        if len(record) < RECORD:
            raise EOFError("the file ends inside a picture")
        yield record


def upright(block: bytes) -> Pixels:
    """The pictures of n whole records, uint8 (n, 96, 96, 3) RGB."""
    stored = np.frombuffer(block, np.uint8).reshape(-1, 3, SIDE, SIDE)
    found = np.empty((len(stored), SIDE, SIDE, 3), np.uint8)
    for channel in range(3):  # four times as fast as one transposition of all axes
        found[..., channel] = stored[:, channel].transpose(0, 2, 1)
    return found
