"""Splits the bytes of a file, in pieces of any size, into chunks. Copies only short pieces; knows no store."""

from collections.abc import Iterable, Iterator

from localpachd.ids import CHUNK_SIZE, BytesLike

_SHORT = 64 << 10
"""Pieces below this many bytes are joined, since each piece kept separately has overhead."""

HOLE = bytes(CHUNK_SIZE)
"""A piece that stands for a whole chunk of a file in which nothing was written."""


def split(pieces: Iterable[bytes]) -> Iterator[list[BytesLike]]:
    """The chunks of a file in order, each as a list of parts.

    The parts are not joined: copying a chunk takes as long as hashing it. Memory holds at most one chunk and the piece
    in which it ends.
    """
    parts: list[BytesLike] = []
    room = CHUNK_SIZE
    for piece in pieces:
        if piece is HOLE and not parts:
            yield [HOLE]
            continue
        rest = memoryview(piece)
        while rest:
            part, rest = rest[:room], rest[room:]
            _hold(parts, part)
            room -= len(part)
            if not room:
                yield parts
                parts, room = [], CHUNK_SIZE
    if parts:
        yield parts


def _hold(parts: list[BytesLike], part: memoryview) -> None:
    if len(part) >= _SHORT:
        parts.append(part)
    elif parts and isinstance(parts[-1], bytearray):
        parts[-1] += part
    else:
        parts.append(bytearray(part))
