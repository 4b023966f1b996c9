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
_MARKER = re.compile(rb"\xff+([^\x00\xff])")
_IN_SAMPLES = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])")  # the next marker behind a scan's samples


def at_most(data: bytes) -> int:
    """A number that the scans do not exceed, found in a thousandth of the time that decoding takes."""
    return data.count(_SCAN)


def lacks_end(data: bytes) -> bool:
    """Whether no end marker follows the last scan."""
    end = data.rfind(END)
    return data.find(_SCAN, max(0, end)) >= 0


def count(data: bytes) -> int:
    """The scans of the JPEG at the start of `data` up to its end marker, or to the end of the data. What lies between
    is skipped as decoders do: thumbnails, and other pictures behind the first one, do not count."""
    found, place, pattern = 0, 0, _MARKER
    while marker := pattern.search(data, place):
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
