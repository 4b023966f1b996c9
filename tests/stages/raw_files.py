"""RAW files as cameras write them, with a given preview, and noise instead of the sensor's samples."""

import struct
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

NOISE = np.random.default_rng(3).integers(0, 256, 40_000, dtype=np.uint8).tobytes()
"""Samples, which contain the beginning of a JPEG by chance."""
SAMPLES = NOISE + b"\xff\xd8\xff\xc4\0\4ab\xff\xd8\xff" + NOISE

WIDTH, HEIGHT, COMPRESSION, PHOTOMETRIC, STRIP, ORIENTATION, LENGTH = 256, 257, 259, 262, 273, 274, 279
SUBFILE, BELOW, TILES, JPEG, JPEG_LENGTH, DNG_VERSION = 254, 330, 324, 513, 514, 50706
EXIF, DATE, MAKE, MODEL, LENS, GPS = 34665, 36867, 271, 272, 42036, 34853
TEXTS, RATIOS = (DATE, MAKE, MODEL, LENS, 1, 3), (2, 4)  # tags of values of these types
CFA = 32803
NEWLY, OLD_JPEG = 7, 6

Tags = Mapping[int, "int | bytes | list[int]"]
"""Values by tag: a number, bytes without a type, or numbers."""


class Tiff:
    """A TIFF written from front to back. order: < or >. magic: its first four bytes."""

    def __init__(self, order: str = "<", magic: bytes = b"", room: bytes = b"") -> None:
        """room: bytes between the header and the rest."""
        self.order = order
        self.content = bytearray((magic or struct.pack(f"{order}2sH", b"II" if order == "<" else b"MM", 42)) + bytes(4))
        self.content += room
        self._link = 4

    def put(self, data: bytes) -> int:
        """Appends bytes and returns their place."""
        self.content += bytes(len(self.content) % 2)
        place = len(self.content)
        self.content += data
        return place

    def directory(self, tags: Tags, linked: bool = True) -> int:
        """Appends a directory, by default as the next one of the chain, and returns its place."""
        entries = b""
        for tag, value in sorted(tags.items()):
            kind = (5 if tag in RATIOS else 4) if not isinstance(value, bytes) else 2 if tag in TEXTS else 7
            values = [value] if isinstance(value, int) else value
            packed = values if isinstance(values, bytes) else struct.pack(f"{self.order}{len(values)}I", *values)
            if len(packed) > 4:
                packed = struct.pack(f"{self.order}I", self.put(packed))
            count = len(values) // 2 if kind == 5 else len(values)
            entries += struct.pack(f"{self.order}HHI", tag, kind, count) + packed.ljust(4, b"\0")
        place = self.put(struct.pack(f"{self.order}H", len(tags)) + entries + bytes(4))
        if linked:
            struct.pack_into(f"{self.order}I", self.content, self._link, place)
            self._link = place + 2 + len(entries)
        return place


def cr2(preview: bytes, orientation: int) -> bytes:
    """Canon: the preview is the first picture, a thumbnail the second, the samples are a JPEG without loss."""
    file = Tiff(room=b"CR\2\0" + bytes(4))
    place = file.put(preview)
    first = {COMPRESSION: OLD_JPEG, STRIP: place, LENGTH: len(preview), ORIENTATION: orientation}
    file.directory({WIDTH: 6000, HEIGHT: 4000, **first})
    lossless = b"\xff\xd8\xff\xc4\0\2" + b"\xff\xc3" + struct.pack(">HBHHB", 17, 14, 4000, 6000, 3) + SAMPLES
    file.directory({COMPRESSION: OLD_JPEG, STRIP: file.put(lossless), LENGTH: len(lossless)})
    return bytes(file.content)


def nef(
    preview: bytes,
    orientation: int,
    order: str = ">",
    date: bytes = b"",
    camera: tuple[bytes, bytes] = (b"", b""),
    size: Tags = MappingProxyType({}),
    lens: bytes = b"",
    gps: Tags = MappingProxyType({}),
) -> bytes:
    """Nikon, and Sony's ARW: a small picture without compression, the preview and the samples in directories below.
    size: that of the samples. lens: beside a date. gps: the directory of the place."""
    file = Tiff(order)
    below = [
        file.directory({SUBFILE: 1, COMPRESSION: 6, JPEG: file.put(preview), JPEG_LENGTH: len(preview)}, linked=False),
        file.directory(
            {SUBFILE: 0, **size, PHOTOMETRIC: CFA, COMPRESSION: 34713, STRIP: file.put(SAMPLES)},
            linked=False,
        ),
    ]
    small = {WIDTH: 16, HEIGHT: 12, 258: 8, COMPRESSION: 1, PHOTOMETRIC: 2, STRIP: file.put(bytes(16 * 12 * 3)), 277: 3}
    made = {tag: text for tag, text in zip((MAKE, MODEL), camera, strict=True) if text}
    first: dict[int, int | list[int]] = {SUBFILE: 1, **small, LENGTH: 16 * 12 * 3, ORIENTATION: orientation}
    exif = {EXIF: file.directory({DATE: date} | ({LENS: lens} if lens else {}), linked=False)} if date else {}
    place = {GPS: file.directory(gps, linked=False)} if gps else {}
    file.directory({**first, **made, BELOW: below, **exif, **place})
    return bytes(file.content)


def dng(preview: bytes, orientation: int, tile: bytes = SAMPLES, size: Tags = MappingProxyType({})) -> bytes:
    """Adobe's: samples in tiles, which may be lossy JPEGs, and the preview as a picture of one strip. size: that of the
    samples."""
    file = Tiff()
    below = [
        file.directory(
            {SUBFILE: 0, **size, PHOTOMETRIC: 34892, COMPRESSION: NEWLY, TILES: [file.put(tile)] * 4},
            linked=False,
        ),
        file.directory(
            {SUBFILE: 1, PHOTOMETRIC: 6, COMPRESSION: NEWLY, STRIP: file.put(preview), LENGTH: len(preview)},
            linked=False,
        ),
    ]
    file.directory({SUBFILE: 1, ORIENTATION: orientation, BELOW: below, DNG_VERSION: b"\1\4\0\0"})
    return bytes(file.content)


def rw2(preview: bytes, orientation: int) -> bytes:
    """Panasonic: the preview is the value of a tag."""
    file = Tiff(magic=b"IIU\0")
    file.directory({46: preview, ORIENTATION: orientation, STRIP: 0xFFFFFFFF})
    file.put(SAMPLES)
    return bytes(file.content)


def orf(preview: bytes, orientation: int, date: bytes = b"") -> bytes:
    """Olympus: only the maker's notes, which are not TIFF, tell the preview's place."""
    file = Tiff(magic=b"IIRO")
    notes = file.put(b"OLYMPUS\0II\3\0" + bytes(200) + preview)
    exif = file.directory({37500: notes, **({DATE: date} if date else {})}, linked=False)
    file.directory({STRIP: file.put(SAMPLES), PHOTOMETRIC: 1, ORIENTATION: orientation, EXIF: exif})
    return bytes(file.content)


def raf(preview: bytes) -> bytes:
    """Fujifilm: a header of its own; the orientation is in the preview's EXIF."""
    header = b"FUJIFILMCCD-RAW 0201FF393001X-T1".ljust(84, b"\0")
    return header + struct.pack(">II", 160, len(preview)) + bytes(68) + preview + SAMPLES


def cr3(preview: bytes, orientation: int, date: bytes = b"") -> bytes:
    """Canon's boxes: a TIFF in one, the preview in the media's."""

    def box(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", 8 + len(content)) + name + content

    described = Tiff()
    described.directory({WIDTH: 6000, HEIGHT: 4000, ORIENTATION: orientation})
    notes = bytes.fromhex("85c0b687820f11e08111f4ce462b6a48") + box(b"CMT1", bytes(described.content))
    if date:
        dated = Tiff()
        dated.directory({DATE: date})
        notes += box(b"CMT2", bytes(dated.content))
    start = box(b"ftyp", b"crx \0\0\0\1crx isom")
    return start + box(b"moov", box(b"uuid", notes)) + box(b"mdat", preview + SAMPLES)
