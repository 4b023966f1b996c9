"""STL-10's binary picture files: records of 3 × 96 × 96 bytes, channel by channel, each column by column.

Knows the layout (https://cs.stanford.edu/~acoates/stl10/) and nothing of where the bytes come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from stages.packs import Pixels

SIDE = 96  # pixels
RECORD = 3 * SIDE * SIDE  # bytes of one picture
_RECORD_NAME = re.compile(r"\.bin/\d{6}\Z", re.IGNORECASE)
_BLOCK = 32  # records read at a time: 0.9 MB, which a processor's cache holds


def is_named_so(name: str) -> bool:
    """Whether a file's name is one that STL-10's files have. The format has no mark of its own to know it by."""
    return name.lower().endswith(".bin") or is_record_name(name)


def record_name(file: str, number: int) -> str:
    """What a record is called, in its file or out of it: "train_X.bin/000123". number: counted from 0."""
    return f"{file}/{number:06}"


def is_record_name(name: str) -> bool:
    """Whether something is called as a record is."""
    return _RECORD_NAME.search(name) is not None


def holds_pictures(name: str, size: int) -> bool:
    """Whether a file is one of STL-10's by its name and size in bytes, whatever it begins with.

    Records are mere pixels: among 100,000 some will begin as an archive or another picture would.
    """
    return size > 0 and is_named_so(name) and problem(name, size) is None


def problem(name: str, size: int) -> str | None:
    """Why the file of that name and size in bytes holds no STL-10 pictures, for the user; None if it does."""
    if name.lower().endswith("_y.bin"):
        return "labels of STL-10, not pictures"
    if size % RECORD:
        return f"not whole STL-10 pictures: {size:,} bytes is no multiple of {RECORD:,}"
    if is_record_name(name) and size > RECORD:
        return f"not one STL-10 picture: {size:,} bytes, not {RECORD:,}"
    return None


class Stream(Protocol):
    """Bytes in order."""

    def read(self, size: int, /) -> bytes:
        """The next `size` bytes, fewer only at the end."""


def pictures(head: bytes, stream: Stream) -> Iterator[tuple[bytes, Pixels]]:
    """Yields each record as its bytes and its picture, uint8 (96, 96, 3) RGB, reading a block at a time.

    head: bytes already read off the stream, less than a block. Raises EOFError if the stream ends inside a record.
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
