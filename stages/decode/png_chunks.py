"""The chunks of a PNG that its pixels depend on, for a decoder that refuses pixels because of a damaged description.

Knows the layout of PNG, no decoder. A damaged chunk of pixels is left for the decoder to refuse.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_ANCILLARY = 0x20  # a bit of the first letter of a name
_TEXTS = (b"tEXt", b"zTXt", b"iTXt")
_EXIF_TEXT = b"Raw profile type exif\0"
_LENGTHS = {b"gAMA": 4, b"cHRM": 32, b"sRGB": 1, b"pHYs": 9, b"tIME": 7, b"cICP": 4, b"acTL": 8, b"fcTL": 26}
_TRANSPARENT = {0: (2, 2), 2: (6, 6), 3: (1, 256)}  # the bytes of tRNS, by the kind of colours
_MOST_CHUNKS = 100_000  # the decoder looks at each in Python; the largest files have 32,000 of 8 KiB
_MOST_INFLATED = 1 << 20  # bytes, as many as the decoder takes


def readable(data: bytes) -> bytes:
    """A PNG file without texts, and without descriptions that are damaged or too large for the decoder; `data` itself
    if nothing is to be left out. Raises ValueError for one of more chunks than any program writes."""
    view, colours = memoryview(data), data[25] if len(data) > 25 else 0
    parts, chunks, place = [view[: len(_SIGNATURE)]], 0, len(_SIGNATURE)
    for chunks, end in enumerate(_ends(data), 1):
        if chunks > _MOST_CHUNKS:
            raise ValueError("too many chunks")
        if _is_kept(view[place:end], colours):
            parts.append(view[place:end])
        place = end
    return data if len(parts) > chunks else b"".join([*parts, view[place:]])


def _ends(data: bytes) -> Iterator[int]:
    """The end of each chunk, as many as are whole."""
    place, name = len(_SIGNATURE), b""
    while len(data) >= place + 12 and name != b"IEND":
        length, name = struct.unpack_from(">I4s", data, place)
        place += 12 + length
        if place > len(data):
            return
        yield place


def _is_kept(chunk: memoryview, colours: int) -> bool:
    """Whether the decoder can read a chunk and has a use for it. Critical ones, which have the pixels, are its own to
    refuse."""
    name = bytes(chunk[4:8])
    if not name[0] & _ANCILLARY:
        return True
    content = bytes(chunk[8:-4])
    if zlib.crc32(chunk[4:-4]) != int.from_bytes(chunk[-4:], "big"):
        return False
    if name in _TEXTS:
        return name == b"zTXt" and content.startswith(_EXIF_TEXT) and _inflates(content)
    if name == b"iCCP":
        return _inflates(content)
    if name == b"tRNS":
        least, most = _TRANSPARENT.get(colours, (0, -1))
        return least <= len(content) <= most
    return len(content) == _LENGTHS.get(name, len(content))


def _inflates(content: bytes) -> bool:
    """Whether what follows a name, a zero and the number of the compression, 0, can be decompressed."""
    end = content.find(b"\0")
    if end < 0 or content[end + 1 : end + 2] != b"\0":
        return False
    try:
        inflater = zlib.decompressobj()
        inflater.decompress(content[end + 2 :], _MOST_INFLATED)
    except zlib.error:
        return False
    return not inflater.unconsumed_tail
