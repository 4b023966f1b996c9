"""The largest picture of an icon file, which holds one in several sizes. Knows the layout of ICO, no decoder."""

from __future__ import annotations

import struct

_PNG = b"\x89PNG\r\n\x1a\n"
_HEADER = struct.Struct("<HHH")
_ENTRY = struct.Struct("<BBBBHHII")  # width, height, colours, reserved, planes, bits, bytes, place


def largest(data: bytes) -> bytes | None:
    """The icon's largest and deepest picture: a PNG file, or an icon file of that picture alone. None if there is none,
    or if it has not the size that the icon gives."""
    found = [_ENTRY.unpack_from(data, place) for place in _entries(data)]
    if not found:
        return None
    entry = max(found, key=lambda each: ((each[0] or 256) * (each[1] or 256), each[5]))
    width, height, length, place = entry[0] or 256, entry[1] or 256, entry[6], entry[7]
    content = data[place : place + length]
    if content.startswith(_PNG):
        return content
    if len(content) < 16 or struct.unpack_from("<ii", content, 4) != (width, 2 * height):  # with the mask
        return None
    return _HEADER.pack(0, 1, 1) + _ENTRY.pack(*entry[:7], _HEADER.size + _ENTRY.size) + content


def _entries(data: bytes) -> range:
    number = min(_HEADER.unpack_from(data)[2], (len(data) - _HEADER.size) // _ENTRY.size) if len(data) > 6 else 0
    return range(_HEADER.size, _HEADER.size + number * _ENTRY.size, _ENTRY.size)
