"""The pictures in STL-10's binary files: records of 3 × 96 × 96 bytes, channel by channel, each column by column.

Knows the layout (https://cs.stanford.edu/~acoates/stl10/) and no files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from stages.framing import Pixels
from stages.stl10 import RECORD, SIDE

_BLOCK = 32  # records read at a time: 0.9 MB, which fits into a processor's cache


class Stream(Protocol):
    """Bytes in order."""

    def read(self, size: int, /) -> bytes:
        """The next `size` bytes, fewer only at the end."""


def pictures(head: bytes, stream: Stream) -> Iterator[tuple[bytes, Pixels]]:
    """Each record as its bytes and its picture, uint8 (96, 96, 3) RGB, read a block at a time.

    head: bytes already read from the stream, less than a block. Raises EOFError if the stream ends inside a record.
    """
    while block := head + stream.read(_BLOCK * RECORD - len(head)):
        head = b""
        if len(block) % RECORD:
            raise EOFError("the file ends inside a picture")
        stored = np.frombuffer(block, np.uint8).reshape(-1, 3, SIDE, SIDE)
        upright = np.empty((len(stored), SIDE, SIDE, 3), np.uint8)
        for channel in range(3):  # four times as fast as one transposition of all axes
            upright[..., channel] = stored[:, channel].transpose(0, 2, 1)
        for row, picture in enumerate(upright):
            yield block[row * RECORD : (row + 1) * RECORD], picture
