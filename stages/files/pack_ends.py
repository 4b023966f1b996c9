"""The ends of a pack, without the pixels between them, which are nearly all of its file: the size of its pictures, and
the pictures. Without NumPy, which takes long to import. Of packs of any version: facts that it does not know are passed
over."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from stages.datum.contract import StageError
from stages.record.sources import Source

_Read = Callable[[int], bytes]
"""Gives the bytes of a file from an offset to its end."""

HEADER = 128
"""Bytes before the pixels, for any number of pictures of any size: NumPy pads headers to 64, and with room for more."""

_LINE = 600
"""About the most bytes of a line about one picture."""

MAGIC = b"\x93NUMPY\x01\x00"  # version 1.0, in which packs are written
_SHAPE = re.compile(rb"'shape': \((\d{1,9}), ([1-9]\d{0,5}), ([1-9]\d{0,5}), (3)\)")


class PackRow(NamedTuple):
    """A picture of a pack: its id, its sources, and its size in pixels without padding, as (width, height)."""

    id: str
    sources: tuple[Source, ...]
    size: tuple[int, int]


def picture_size(npy: Path) -> tuple[int, int]:
    """(width, height) of a pack's pictures in pixels. Raises StageError for a file that is not a pack."""
    try:
        with npy.open("rb") as file:
            head = file.read(len(MAGIC) + 2)
            _, height, width, _ = shape(head + file.read(int.from_bytes(head[len(MAGIC) :], "little")))
    except (OSError, ValueError) as failure:
        raise StageError(
            f"the pack {npy.name} cannot be read ({failure}); run preprocess again: "
            "lookalike deploy --reprocess preprocess"
        ) from failure
    return width, height


def shape(head: bytes) -> tuple[int, int, int, int]:
    """The shape (pictures, H, W, 3) of the array that begins with these bytes. Raises ValueError if no array of
    a pack does."""
    if not head.startswith(MAGIC):
        raise ValueError("it does not begin as one")
    found = _SHAPE.search(head, len(MAGIC) + 2)
    if found is None:
        raise ValueError("it is not an array of pictures")
    pictures, height, width, colours = map(int, found.groups())
    return pictures, height, width, colours


def side_of(head: bytes) -> int | None:
    """The side, in pixels, of a pack's pictures, from the first bytes of its file; None for another file."""
    try:
        return shape(head[:HEADER])[1]
    except ValueError:
        return None


def offset(row: int, side: int) -> int:
    """The place in its file of a picture's pixels, as bytes; that of the lines, for as many rows as there are."""
    return HEADER + row * 3 * side * side


def rows(lines: bytes) -> list[PackRow]:
    """The pictures in a pack's lines, in the order of their pixels. Raises ValueError for other bytes."""
    try:
        return [_row(json.loads(line)) for line in lines.splitlines()[1:]]
    except (KeyError, TypeError, AttributeError, RecursionError) as failure:
        raise ValueError(f"these are not the lines of a pack: {failure}") from failure


def find(read: _Read, size: int, side: int) -> list[PackRow] | None:
    """The pictures of a pack whose number is not known; None for a file that is not a pack of such pictures.

    size: of the file, in bytes. side: of its pictures, in pixels.
    """
    picture = 3 * side * side
    most = (size - HEADER) // picture
    back = most * _LINE // picture + 1
    while most >= 0:
        first = max(0, most - back)
        data = read(offset(first, side))
        for number in range(first, most + 1):
            start = (number - first) * picture
            if data.startswith(b'{"fit":', start):
                lines = data[start:]
                if len(lines.splitlines()) == number + 1:
                    return _rows_or_none(lines)
        if first == 0:
            return None
        back *= 4
    return None


def _rows_or_none(lines: bytes) -> list[PackRow] | None:
    try:
        return rows(lines)
    except ValueError:
        return None


def _row(line: dict[str, Any]) -> PackRow:
    width, height = line["size"]
    known = ({name: each[name] for name in Source._fields if name in each} for each in line["sources"])
    return PackRow(line["id"], tuple(Source(**each) for each in known), (width, height))


def source_of(line: bytes) -> str:
    """The true path of a rejected file, from its line."""
    return str(json.loads(line)["source"])
