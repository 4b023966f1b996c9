"""Ingest blocks: tar archives of at most 400 pictures, or of as many as a part has, so that a large library does not
have a datum for each picture.

A picture's block depends on names alone: blocks are the leaves of a binary tree over the hashes of names, and a leaf
above the limit is divided in two. So pictures of the same names are in the same blocks whatever happened before, and a
changed picture changes one block. Knows tar files, no server.
"""

import errno
import tarfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from itertools import groupby
from pathlib import Path

from stages.record.block_names import BITS, bits_of
from stages.record.part_names import PART
from stages.record.pfs_names import escape_path, unescape

LIMIT = PART
"""Most pictures in a block of a library whose parts have their usual size."""

_PIECE = 512 << 10
"""Bytes read at a time."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The range of a picture's bytes: `size` bytes of a file from `offset` on; None for the whole file. prefix: bytes
    that come before them."""

    path: Path
    offset: int = 0
    size: int | None = None
    prefix: bytes = b""


def free_branch(name: str, prefixes: Iterable[str]) -> str:
    """The prefix of the new block for a picture that belongs to none of these: the largest empty branch."""
    bits = bits_of(name)
    return bits[: 1 + max((_common(bits, prefix) for prefix in prefixes), default=-1)]


def _common(bits: str, prefix: str) -> int:
    return next((at for at, bit in enumerate(prefix) if bits[at] != bit), len(prefix))


def divide(names: Iterable[str], prefix: str = "", limit: int = LIMIT) -> dict[str, set[str]]:
    """The names of one leaf divided into leaves, by prefix: itself, or its parts if it holds more than `limit`."""
    return _divide([(bits_of(name), name) for name in names], prefix, limit)


def _divide(placed: list[tuple[str, str]], prefix: str, limit: int) -> dict[str, set[str]]:
    if len(placed) <= limit or len(prefix) == BITS - 1:
        return {prefix: {name for _, name in placed}} if placed else {}
    leaves: dict[str, set[str]] = {}
    for longer in (prefix + "0", prefix + "1"):
        leaves |= _divide([each for each in placed if each[0].startswith(longer)], longer, limit)
    return leaves


def join(
    shrunk: Mapping[str, Collection[str]],
    others: Iterable[str],
    names_of: Callable[[str], Collection[str]],
    limit: int = LIMIT,
) -> tuple[dict[str, set[str]], set[str]]:
    """Leaves that have lost names, by prefix, joined with their neighbours wherever one block is now enough.

    `others` are the prefixes of all other leaves, whose names `names_of` tells: only those next to a shrunken one are
    asked for. Returns the leaves to write, and the prefixes of those that are gone.
    """
    leaves = {prefix: set(names) for prefix, names in shrunk.items()}
    rest = set(others)
    gone = set(shrunk)
    for deepest in sorted(shrunk, key=len, reverse=True):
        prefix = deepest
        while prefix and prefix in leaves:
            twin = prefix[:-1] + ("0" if prefix[-1] == "1" else "1")
            if any(each != twin and each.startswith(twin) for each in rest | leaves.keys()):
                break  # the other half is divided, so it holds more than one block can
            beside = leaves[twin] if twin in leaves else set(names_of(twin)) if twin in rest else set()
            if len(leaves[prefix]) + len(beside) > limit:
                break
            if twin in rest:
                rest.discard(twin)
                gone.add(twin)
            leaves[prefix[:-1]] = beside | leaves.pop(prefix)
            leaves.pop(twin, None)
            prefix = prefix[:-1]
    written = {prefix: names for prefix, names in leaves.items() if names}
    return written, gone - written.keys()


def tar(members: Mapping[str, ByteRange]) -> Iterator[bytes]:
    """The block of these pictures, by true name, piece by piece: equal pictures give equal bytes.

    Raises OSError if one cannot be read.
    """
    length = 0
    # Pictures out of one file follow each other: it is opened once for all of them.
    for path, some in groupby(sorted(members.items()), key=lambda member: member[1].path):
        with _opened(path) as file:
            for name, span in some:
                size = _size(span)
                start = _header(escape_path(name), size)
                yield start
                yield from _read(file, span, size)
                padding = -size % tarfile.BLOCKSIZE
                yield bytes(padding)
                length += len(start) + size + padding
    yield bytes(2 * tarfile.BLOCKSIZE)
    yield bytes(-(length + 2 * tarfile.BLOCKSIZE) % tarfile.RECORDSIZE)


def content(span: ByteRange) -> Iterator[bytes]:
    """The bytes of a picture, piece by piece. Raises OSError, which names the file, if they cannot be read."""
    with _opened(span.path) as file:
        yield from _read(file, span, _size(span))


def _header(name: str, size: int) -> bytes:
    """The header of a member with this name in PFS: that of tarfile, in a tenth of its time."""
    if len(name) > tarfile.LENGTH_NAME or size > _MOST:
        return _any_header(name, size)
    shown, digits = name.encode("ascii"), b"%011o" % size
    check = b"%06o" % (_BLANK_SUM + sum(shown) + sum(digits))
    shown = shown.ljust(tarfile.LENGTH_NAME, b"\0")
    return shown + _BLANK[100:124] + digits + _BLANK[135:148] + check + _BLANK[154:]


def _any_header(name: str, size: int) -> bytes:
    header = tarfile.TarInfo(name)
    header.size = size
    header.mode = 0o644
    return header.tobuf(tarfile.PAX_FORMAT)


_MOST = 8**11 - 1
"""The most bytes of a member whose size fits into a plain header."""

_BLANK = _any_header("", 0)
"""A header: its name is at 0 (100 bytes), the digits of its size at 124 (11), those of its check sum at 148 (6)."""

_BLANK_SUM = sum(_BLANK[:124] + _BLANK[135:148] + b" " * 8 + _BLANK[156:])
"""The check sum of a header without a name and a size: its own bytes count as spaces."""


def _opened(path: Path) -> FileIO:
    return path.open("rb", buffering=0)  # no buffer: pictures are read at once


def _size(span: ByteRange) -> int:
    size = span.path.stat().st_size - span.offset if span.size is None else span.size
    return len(span.prefix) + size


def _read(file: FileIO, span: ByteRange, size: int) -> Iterator[bytes]:
    if span.prefix:
        yield span.prefix
        size -= len(span.prefix)
    file.seek(span.offset)
    while size:
        try:
            piece = file.read(min(size, _PIECE))
        except OSError as error:  # which names no file
            raise OSError(error.errno, error.strerror, str(span.path)) from error
        if not piece:
            raise OSError(errno.EIO, "it has become shorter while it was read", str(span.path))
        yield piece
        size -= len(piece)


def read(block: Path) -> dict[str, ByteRange]:
    """The pictures of a block by true name. Raises tarfile.TarError for an invalid archive."""
    with tarfile.open(block, mode="r:") as archive:
        return {unescape(each.name): ByteRange(block, each.offset_data, each.size) for each in archive if each.isfile()}
