"""The scans of a JPEG: the passes over all of its pixels that decoding takes. Knows the markers of JPEG, no decoder.

A progressive JPEG refines its pixels scan by scan. A scan that changes nothing has a dozen bytes and still costs a
pass, so that a hostile file of some megabytes keeps a decoder busy for hours.
"""

from __future__ import annotations

import re

END = b"\xff\xd9"
_SCAN = b"\xff\xda"
_START_OF_SCAN, _END = 0xDA, 0xD9
_ALONE = frozenset((0x01, *range(0xD0, 0xD9)))  # markers without a length and content
_MOST_SEGMENTS, _MOST_BETWEEN = 5_000, 1 << 16  # before the first scan: of segments, and of bytes between them
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
    place, segments, between = 2, 0, 0
    while segments <= _MOST_SEGMENTS and between <= _MOST_BETWEEN:
        marker = _next(_MARKER, data, place)
        if marker is None or marker[1][0] == _START_OF_SCAN:
            between += (len(data) if marker is None else marker.end()) - place
            break
        between += marker.end() - place - 2
        segments += 1
        place = marker.end()
        if marker[1][0] not in _ALONE:
            place += max(2, int.from_bytes(data[place : place + 2], "big"))
    if segments > _MOST_SEGMENTS or between > _MOST_BETWEEN:
        raise ValueError("too much before the first scan")


def lacks_end(data: bytes) -> bool:
    """Whether no end marker follows the last scan."""
    end = data.rfind(END)
    return data.find(_SCAN, max(0, end)) >= 0


def count(data: bytes) -> int:
    """The scans of the JPEG at the start of `data` up to its end marker, or to the end of the data. What lies between
    is skipped as decoders do: thumbnails, and other pictures behind the first one, do not count."""
    found, place, pattern = 0, 0, _MARKER
    while marker := _next(pattern, data, place):
        code, place = marker[1][0], marker.end()
        if code == _END:
            break
        if code in _ALONE:
            continue
        place += max(2, int.from_bytes(data[place : place + 2], "big"))
        if code == _START_OF_SCAN:
            found += 1
            pattern = _IN_SAMPLES
    return found


def _next(pattern: re.Pattern[bytes], data: bytes, place: int) -> re.Match[bytes] | None:
    begin = data.find(b"\xff", place)
    return pattern.match(data, begin) if begin >= 0 else None
