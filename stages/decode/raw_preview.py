"""The preview inside of a camera's RAW file. Knows the directories of TIFF and the headers of JPEG, no decoder.

A RAW file holds the samples of a sensor, which each program develops in its own way, and the camera's own picture as
one or more JPEGs. Makers store these in many places, often ones that only their own notes name. So the preview is the
largest JPEG anywhere in the file that can be a picture: its headers tell, and the samples are left out.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from stages.decode.camera_notes import CameraNotes

_PHOTOMETRIC, _ORIENTATION, _STRIPS, _TILES, _BELOW, _DNG_VERSION = 262, 274, 273, 324, 330, 50706
_EXIF, _DATE, _MAKE, _MODEL, _LENS, _WIDTH, _HEIGHT, _GPS = 34665, 36867, 271, 272, 42036, 256, 257, 34853
_PLACE = _LATITUDE_OF, _LATITUDE, _LONGITUDE_OF, _LONGITUDE = 1, 2, 3, 4  # in the directory of GPS
_TAGS = frozenset(
    (
        *(_PHOTOMETRIC, _ORIENTATION, _STRIPS, _TILES, _BELOW, _DNG_VERSION, _EXIF, _DATE, _MAKE, _MODEL, _LENS),
        *(_WIDTH, _HEIGHT, _GPS, *_PLACE),
    )
)
_ON_THEIR_SIDES = (5, 6, 7, 8)  # orientations
_OF_A_SENSOR = (32803, 34892)  # photometric interpretations: a mosaic of colours, and linear samples
_FORMATS = {1: "B", 2: "B", 3: "H", 4: "I", 5: "II", 13: "I"}  # of the types of values that these tags have
_MOST_DIRECTORIES = 64
_MOST_VALUES = 1 << 16

_START = b"\xff\xd8\xff"
_MOST_STARTS = 10_000  # samples contain a few by chance
_MOST_SEGMENTS = 200  # before a JPEG's size
_DECODABLE = (0xC0, 0xC1, 0xC2)  # frames: baseline, extended, progressive; samples are in others, without loss
_WITHOUT_SIZE = (0xC3, *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xDB))

TiffDirectory = dict[int, tuple[int, ...]]
"""The values of a TIFF directory by tag, as far as they are needed here."""


@dataclass(frozen=True)
class RawPreview:
    """A JPEG inside of a RAW file, from its first byte on. orientation: one of EXIF's numbers, as the file gives it for
    a picture that lies as the samples do; None without one, and where the preview has been turned already. notes: the
    file's own, beside which the JPEG may have others."""

    jpeg: bytes
    orientation: int | None
    notes: CameraNotes


def is_raw(data: bytes) -> bool:
    """Whether a TIFF is a RAW file: one of its pictures holds samples of a sensor."""
    directories = _directories(data, 0)
    return any(_is_of_a_sensor(each) for each in directories) or any(_DNG_VERSION in each for each in directories[:1])


def preview(data: bytes) -> RawPreview | None:
    """The largest preview in a RAW file; None without one."""
    directories = _directories(data, 0)
    samples = set[int]()
    for each in directories:
        samples.update(each.get(_TILES, ()), each.get(_STRIPS, ()) if _is_of_a_sensor(each) else ())
    found = [(size[0] * size[1], -at, size) for at, size in _jpegs(data) if at not in samples]
    if not found:
        return None
    _, place, size = max(found)
    boxes = (_directories(data, data.find(name) + 4) for name in (b"CMT1", b"CMT2", b"CMT4"))
    told = directories or [each for box in boxes for each in box]  # CR3 has these in boxes of their own
    given = told[0].get(_ORIENTATION, ()) if told else ()
    orientation = given[0] if given and not _is_turned(size, given[0], directories) else None
    return RawPreview(data[-place:], orientation, _notes(told))


def _notes(directories: list[TiffDirectory]) -> CameraNotes:
    """What these say, the first of which describes the file."""
    first = directories[0] if directories else {}
    date, lens = (next((each[tag] for each in directories if tag in each), ()) for tag in (_DATE, _LENS))
    gps = next((each for each in directories if all(tag in each for tag in _PLACE)), {})
    latitude, longitude = (_ratios(gps.get(tag, ())) for tag in (_LATITUDE, _LONGITUDE))
    return CameraNotes(
        date=_text(date[:19]),
        make=_text(first.get(_MAKE, ())),
        model=_text(first.get(_MODEL, ())),
        lens_model=_text(lens),
        latitude_of=_text(gps.get(_LATITUDE_OF, ())),
        latitude=latitude,
        longitude_of=_text(gps.get(_LONGITUDE_OF, ())),
        longitude=longitude,
    )


def _ratios(values: tuple[int, ...]) -> list[float]:
    """Those of numerators with the denominators that follow them; NaN over zero."""
    return [above / below if below else math.nan for above, below in zip(values[::2], values[1::2], strict=True)]


def _is_turned(size: tuple[int, int], orientation: int, directories: list[TiffDirectory]) -> bool:
    """Whether a preview of this width and height has been turned already: it stands where the samples lie, or lies
    where they stand. A half turn, and a square, cannot be told."""
    sensors = [each for each in directories if _is_of_a_sensor(each) and each.get(_WIDTH) and each.get(_HEIGHT)]
    if orientation not in _ON_THEIR_SIDES or not sensors:
        return False
    width, height = max((each[_WIDTH][0], each[_HEIGHT][0]) for each in sensors)
    return (width - height) * (size[0] - size[1]) < 0


def _text(values: tuple[int, ...]) -> str:
    return "".join(chr(each & 255) for each in values)


def _is_of_a_sensor(directory: TiffDirectory) -> bool:
    return any(value in _OF_A_SENSOR for value in directory.get(_PHOTOMETRIC, ()))


def _directories(data: bytes, start: int) -> list[TiffDirectory]:
    """The directories of the TIFF that starts there, the first one first; as many as can be read."""
    order = {b"II": "<", b"MM": ">"}.get(data[start : start + 2])
    if order is None or len(data) < start + 8:
        return []
    waiting = [struct.unpack_from(f"{order}I", data, start + 4)[0]]
    seen = set[int]()
    found: list[TiffDirectory] = []
    while waiting and len(found) < _MOST_DIRECTORIES:
        place = waiting.pop(0)
        if place and place not in seen:
            seen.add(place)
            try:
                directory, following = _directory(data, start, place, order)
            except struct.error:
                continue
            found.append(directory)
            waiting += [*directory.get(_BELOW, ()), following, *directory.get(_EXIF, ()), *directory.get(_GPS, ())]
    return found


def _directory(data: bytes, start: int, place: int, order: str) -> tuple[TiffDirectory, int]:
    """The directory at a place, and the place of the following one. Raises struct.error if it is cut off."""
    (number,) = struct.unpack_from(f"{order}H", data, start + place)
    directory: TiffDirectory = {}
    for at in range(start + place + 2, start + place + 2 + 12 * number, 12):
        tag, kind, count = struct.unpack_from(f"{order}HHI", data, at)
        if tag in _TAGS and kind in _FORMATS and count <= _MOST_VALUES:
            values = f"{order}{count * len(_FORMATS[kind])}{_FORMATS[kind][0]}"
            if struct.calcsize(values) > 4:
                at = start + struct.unpack_from(f"{order}I", data, at + 8)[0] - 8
            directory[tag] = struct.unpack_from(values, data, at + 8)
    end = start + place + 2 + 12 * number
    return directory, struct.unpack_from(f"{order}I", data, end)[0] if end + 4 <= len(data) else 0


def _jpegs(data: bytes) -> Iterator[tuple[int, tuple[int, int]]]:
    """The place and the size of everything that begins as a JPEG does which can be decoded."""
    at = data.find(_START)
    for _ in range(_MOST_STARTS):
        if at < 0:
            return
        size = _size(data, at)
        if size[0] and size[1]:
            yield at, size
        at = data.find(_START, at + 1)


def _size(data: bytes, at: int) -> tuple[int, int]:
    """The width and height of the JPEG there; zeros if it is none, or not one of 8 bits in grey or colour."""
    at += 2
    for _ in range(_MOST_SEGMENTS):
        head = data[at : at + 10]
        if len(head) < 10 or head[0] != 0xFF or head[1] < 0xC0 or head[1] in _WITHOUT_SIZE:
            return 0, 0
        if head[1] in _DECODABLE:
            _, precision, height, width, colours = struct.unpack(">HBHHB", head[2:])
            return (width, height) if precision == 8 and colours in (1, 3) else (0, 0)
        # 0xFF before a marker is padding.
        at += 1 if head[1] == 0xFF else 2 + max(2, int.from_bytes(head[2:4], "big"))
    return 0, 0
