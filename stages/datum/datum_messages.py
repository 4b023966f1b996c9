"""The messages of the worker's call NextDatum on the wire, without protobuf: its classes take longer to import than all
else that a process needs before its first datum, and Pachyderm starts a new one after each failed attempt.

A request has the error of the last datum, a string, as field 1; a reply has KEY=value strings as field 1, repeated.
"""

METHOD = "/pachyderm.worker.Worker/NextDatum"

_TEXT = 0x0A  # field 1, of the wire type 2: a length and so many bytes
_FIXED = {1: 8, 5: 4}  # the lengths in bytes of the wire types that state none


def request(error: str) -> bytes:
    """A NextDatumRequest with that error, "" for none."""
    text = error.encode()
    return bytes([_TEXT, *_varint(len(text))]) + text if text else b""


def env(reply: bytes) -> list[str]:
    """The `env` of a NextDatumResponse. Skips other fields. Raises ValueError for anything else."""
    found, at = [], 0
    while at < len(reply):
        key, at = _read_varint(reply, at)
        if key & 7 == 2:
            length, at = _read_varint(reply, at)
        elif key & 7 == 0:
            end = _read_varint(reply, at)[1]
            length = end - at
        elif key & 7 in _FIXED:
            length = _FIXED[key & 7]
        else:
            raise ValueError(f"a field of the wire type {key & 7}")
        if at + length > len(reply):
            raise ValueError("the message is cut off")
        if key == _TEXT:
            found.append(reply[at : at + length].decode())
        at += length
    return found


def _varint(number: int) -> list[int]:
    found = []
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return [*found, number]


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins there, and the place after it."""
    number = shift = 0
    while at < len(data):
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return number, at
    raise ValueError("the message is cut off")
