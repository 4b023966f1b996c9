"""The content of an upload in pieces, each for a message of its own. Copies every byte once; knows no messages."""

from collections.abc import Iterable, Iterator
from pathlib import Path

CHUNK_SIZE = 512 << 10
"""Bytes. Larger messages cost both sides more: the system makes new memory for each."""


def chunks_of(content: bytes | Path | Iterable[bytes]) -> Iterator[bytes]:
    """The content in pieces of at least `CHUNK_SIZE` bytes, and less than twice as many; the last one may be
    shorter."""
    gathered: list[bytes] = []
    size = 0
    for part in _short(content):
        gathered.append(part)
        size += len(part)
        if size >= CHUNK_SIZE:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)


def _short(content: bytes | Path | Iterable[bytes]) -> Iterator[bytes]:
    """The content in parts of at most `CHUNK_SIZE` bytes, none of them empty."""
    if isinstance(content, Path):
        with content.open("rb", buffering=0) as file:
            while part := file.read(CHUNK_SIZE):
                yield part
        return
    for whole in (content,) if isinstance(content, bytes) else content:
        if len(whole) <= CHUNK_SIZE:
            if whole:
                yield whole
        else:
            yield from (whole[start : start + CHUNK_SIZE] for start in range(0, len(whole), CHUNK_SIZE))
