"""The pieces of protobuf's encoding, for the messages that are encoded by hand because they come in great numbers: the
library takes several times as long, since the version that the client requires is pure Python. Knows no message."""

from google.protobuf.descriptor import FieldDescriptor

VARINT, BYTES = 0, 2
"""Wire types."""


def varint(number: int) -> bytes:
    """A number that is not negative."""
    if number < 0x80:
        return _SHORT[number]
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def key(field: FieldDescriptor, wire_type: int) -> bytes:
    """The bytes before a field's value."""
    return varint(field.number << 3 | wire_type)


_SHORT = [bytes((number,)) for number in range(0x80)]
