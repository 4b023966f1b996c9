"""The names of a pack's pictures, from the end of its file: without the pixels, which are nearly all of it, and without
NumPy, which takes long to import."""

from __future__ import annotations

import json
from collections.abc import Callable

from stages.packheaders import shape

Read = Callable[[int], bytes]
"""Gives the bytes of a file from an offset to its end."""

HEADER = 128
"""Bytes before the pixels, for any number of pictures of any size: NumPy pads headers to 64, and with room for more."""

_LINE = 400
"""About the most bytes of a line about one picture."""


def side_of(head: bytes) -> int | None:
    """The side, in pixels, of a pack's pictures, from the first bytes of its file; None for another file."""
    try:
        return shape(head[:HEADER])[1]
    except (ValueError, SyntaxError, KeyError, TypeError):
        return None


def sources(read: Read, size: int, side: int) -> dict[str, str] | None:
    """The sha256 of every source in a pack by its true path; None for a file that is not a pack of such pictures.

    size: of the file, in bytes. side: of its pictures, in pixels.
    """
    picture = 3 * side * side
    most = (size - HEADER) // picture
    back = most * _LINE // picture + 1
    while most >= 0:
        first = max(0, most - back)
        data = read(HEADER + first * picture)
        for number in range(first, most + 1):
            start = (number - first) * picture
            if data.startswith(b'{"fit":', start):
                lines = data[start:].splitlines()
                if len(lines) == number + 1:
                    return _paths(lines[1:])
        if first == 0:
            return None
        back *= 4
    return None


def _paths(lines: list[bytes]) -> dict[str, str]:
    found = (each for line in lines for each in json.loads(line)["sources"])
    return {each["path"]: each["sha256"] for each in found}


def source_of(line: bytes) -> str:
    """The true path of a rejected file, from its line."""
    return str(json.loads(line)["source"])
