"""Ingest blocks: tar archives of at most 400 pictures, or of as many as a part has, so that a large library does not
have a datum for each picture.

Blocks are cut from pictures in the order of their names, so those of one folder lie in few of them, and never change.
Each begins with the list of its pictures, so that nobody has to read all of it to learn their names, and is named by
that list. Knows tar files, no server.
"""

import errno
import hashlib
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from io import FileIO
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from stages.record import block_names, url_records
from stages.record.block_names import BlockMember
from stages.record.part_names import PART
from stages.record.pfs_names import MEMBERS_FILE, escape_path, unescape
from stages.record.url_records import UrlRecord

LIMIT = PART
"""Most pictures in a block of a library whose parts have their usual size."""

Picture = TypeVar("Picture")

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


@dataclass(frozen=True)
class IngestBlock:
    """A block to put: its pictures in the order of their names, each with its bytes."""

    pictures: tuple[tuple[BlockMember, ByteRange], ...]

    @cached_property
    def listed(self) -> bytes:
        """The list of its pictures."""
        return block_names.format_list(member for member, _ in self.pictures)

    @cached_property
    def name(self) -> str:
        """Its PFS name."""
        return block_names.listed_name(self.listed)

    def pieces(self) -> Iterator[bytes]:
        """Its bytes, piece by piece. Raises OSError if a picture cannot be read, or is not the listed one any more."""
        yield from _padded(_header(MEMBERS_FILE, len(self.listed)), [self.listed], len(self.listed))
        length = tarfile.BLOCKSIZE + _rounded(len(self.listed))
        # Pictures out of one file follow each other: it is opened once for all of them.
        for path, some in groupby(self.pictures, key=lambda each: each[1].path):
            with _opened(path) as file:
                for member, span in some:
                    start = _header(escape_path(member.path), member.size)
                    yield from _padded(start, _checked(file, member, span), member.size)
                    length += len(start) + _rounded(member.size)
        yield bytes(2 * tarfile.BLOCKSIZE)
        yield bytes(-(length + 2 * tarfile.BLOCKSIZE) % tarfile.RECORDSIZE)


@dataclass(frozen=True)
class RecordBlock:
    """A block of pictures that stay where they are: their records, in the order of their names."""

    pictures: tuple[UrlRecord, ...]

    @cached_property
    def listed(self) -> bytes:
        """Its bytes."""
        return url_records.format_records(self.pictures)

    @cached_property
    def name(self) -> str:
        """Its PFS name."""
        return block_names.listed_name(self.listed, url_records.SUFFIX)

    def pieces(self) -> Iterator[bytes]:
        """Its bytes, piece by piece."""
        yield self.listed


def cut(pictures: Mapping[str, Picture], limit: int = LIMIT) -> Iterator[dict[str, Picture]]:
    """The pictures of one block after the other."""
    ordered = sorted(pictures.items(), key=itemgetter(0))
    for first in range(0, len(ordered), limit):
        yield dict(ordered[first : first + limit])


def block(spans: Mapping[str, ByteRange]) -> IngestBlock:
    """The block of these pictures, each of which is read. Raises OSError if one cannot be read."""
    return IngestBlock(tuple((measure(name, span), span) for name, span in sorted(spans.items(), key=itemgetter(0))))


def measure(name: str, span: ByteRange) -> BlockMember:
    """A picture's hash and size. Raises OSError, which names the file, if it cannot be read."""
    found, size = hashlib.sha256(), 0
    for piece in content(span):
        found.update(piece)
        size += len(piece)
    return BlockMember(name, found.hexdigest(), size)


def _padded(start: bytes, pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    yield start
    yield from pieces
    yield bytes(-size % tarfile.BLOCKSIZE)


def _rounded(size: int) -> int:
    return size + -size % tarfile.BLOCKSIZE


def _checked(file: FileIO, member: BlockMember, span: ByteRange) -> Iterator[bytes]:
    """The bytes of a picture, if they are still those that the list promises."""
    found = hashlib.sha256()
    for piece in _read(file, span, member.size):
        found.update(piece)
        yield piece
    if found.hexdigest() != member.sha256:
        raise OSError(errno.EIO, "it has changed while it was read", str(span.path))


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
        pictures = (each for each in archive if each.isfile() and each.name != MEMBERS_FILE)
        return {unescape(each.name): ByteRange(block, each.offset_data, each.size) for each in pictures}
