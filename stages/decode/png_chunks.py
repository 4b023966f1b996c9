"""The chunks of a PNG that its pixels depend on, for a decoder that refuses pixels because of a damaged description.

Knows the layout of PNG, no decoder. A damaged chunk of pixels is left for the decoder to refuse.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import islice

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_TEXTS = (b"tEXt", b"zTXt", b"iTXt")
_EXIF_TEXT = b"Raw profile type exif\0"
_LENGTHS = {b"gAMA": 4, b"cHRM": 32, b"sRGB": 1, b"pHYs": 9, b"tIME": 7, b"cICP": 4, b"acTL": 8, b"fcTL": 26}
_TRANSPARENT = {0: (2, 2), 2: (6, 6), 3: (1, 256)}  # the bytes of tRNS, by the kind of colours
_MOST_CHUNKS = 100_000  # the decoder looks at each in Python; the largest files have 32,000 of 8 KiB
_MOST_INFLATED = 1 << 20  # bytes, as many as the decoder takes

_Chunk = tuple[bytes, bytes, bool]  # its name and content, and whether its checksum is right


def readable(data: bytes) -> bytes:
    """A PNG file without texts, and without descriptions that are damaged or too large for the decoder; `data` itself
    if nothing is to be left out. Raises ValueError for one of more chunks than any program writes."""
    chunks = list(islice(_chunks(data), _MOST_CHUNKS + 1))
    if len(chunks) > _MOST_CHUNKS:
        raise ValueError("too many chunks")
    colours = data[25] if len(data) > 25 else 0
    kept = [_is_kept(*each, colours) for each in chunks]
    if all(kept):
        return data
    parts, place = [_SIGNATURE], len(_SIGNATURE)
    for (_, content, _), keep in zip(chunks, kept, strict=True):
        following = place + 12 + len(content)
        if keep:
            parts.append(data[place:following])
        place = following
    return b"".join([*parts, data[place:]])


def _chunks(data: bytes) -> Iterator[_Chunk]:
    """As many as are whole. The checksums of critical chunks, which have the pixels, are left to the decoder."""
    place, name = len(_SIGNATURE), b""
    while len(data) >= place + 12 and name != b"IEND":
        length, name = struct.unpack_from(">I4s", data, place)
        end = place + 8 + length
        if end + 4 > len(data):
            return
        content = data[place + 8 : end]
        right = _is_critical(name) or zlib.crc32(content, zlib.crc32(name)) == int.from_bytes(
            data[end : end + 4], "big"
        )
        yield name, content, right
        place = end + 4


def _is_critical(name: bytes) -> bool:
    return not name[0] & 0x20


def _is_kept(name: bytes, content: bytes, right: bool, colours: int) -> bool:
    if _is_critical(name) or not right:
        return right
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
