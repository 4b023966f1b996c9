"""The scans of a JPEG: the passes over all of its pixels that decoding takes. Knows the markers of JPEG, no decoder.

A progressive JPEG refines its pixels scan by scan. A scan that changes nothing has a dozen bytes and still costs a
pass, so that a hostile file of some megabytes keeps a decoder busy for hours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_START_OF_SCAN, _END = 0xDA, 0xD9
_SCAN, END = bytes((0xFF, _START_OF_SCAN)), bytes((0xFF, _END))
_ALONE = frozenset((0x01, *range(0xD0, 0xD9)))  # markers without a length and content
_MOST_SEGMENTS, _MOST_BETWEEN = 5_000, 65_534  # before the first scan: of segments, and of bytes between them
_MARKER = re.compile(rb"\xff++(?:\x00[^\xff]*+\xff++)*+([^\x00\xff])")
_IN_SAMPLES = re.compile(
    rb"\xff++(?:[\x00\xd0-\xd7][^\xff]*+\xff++)*+([^\x00\xff\xd0-\xd7])"
)  # behind a scan's samples
"""The next marker from a 0xFF on. Possessive, and to be matched there and nowhere else: a search would look at a long
run of 0xFF once for each of them."""


def at_most(data: bytes) -> int:
    """A number that the scans do not exceed, found in a thousandth of the time that decoding takes."""
    return data.count(_SCAN)


def check_headers(data: bytes) -> None:
    """Raises ValueError for a JPEG with more segments, or more bytes between them, than any program writes: the decoder
    looks at each in Python, while nothing else runs."""
    segments = between = 0
    for code, skipped in _markers(data):
        between += skipped
        if code in (None, _START_OF_SCAN) or segments > _MOST_SEGMENTS or between > _MOST_BETWEEN:
            break
        segments += 1
    if segments > _MOST_SEGMENTS or between > _MOST_BETWEEN:
        raise ValueError("too much before the first scan")


def lacks_end(data: bytes) -> bool:
    """Whether no end marker follows the last scan."""
    end = data.rfind(END)
    return data.find(_SCAN, max(0, end)) >= 0


def count(data: bytes) -> int:
    """The scans of the JPEG at the start of `data` up to its end marker, or to the end of the data. What lies between
    is skipped as decoders do: thumbnails, and other pictures behind the first one, do not count."""
    found = 0
    for code, _ in _markers(data):
        if code == _END:
            break
        found += code == _START_OF_SCAN
    return found


def _markers(data: bytes) -> Iterator[tuple[int | None, int]]:
    """The code of each marker, and the bytes that are skipped to get there; None for the end of the data. Segments are
    passed over by their length, and a scan's samples up to the next marker."""
    place, pattern = 2, _MARKER
    while True:
        begin = data.find(b"\xff", place)
        marker = pattern.match(data, begin) if begin >= 0 else None
        if marker is None:
            yield None, len(data) - place
            return
        code = marker[1][0]
        yield code, marker.end() - place - 2
        place = marker.end()
        if code not in _ALONE:
            place += max(2, int.from_bytes(data[place : place + 2], "big"))
        if code == _START_OF_SCAN:
            pattern = _IN_SAMPLES
