"""IDX files, in which MNIST and its like are published: many grey pictures of one size, and their labels in a file of
their own. Knows their layout (http://yann.lecun.com/exdb/mnist/) and files on this machine; contacts no server.
"""

import gzip
import os
import re
import struct
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from io import BufferedIOBase
from pathlib import Path

from pipelines.errors import LookalikeError

_PICTURES, _LABELS = b"\0\0\x08\x03", b"\0\0\x08\x01"
_SIZES = {_PICTURES: 3, _LABELS: 1}
_GZIP = b"\x1f\x8b"
_NAMED = re.compile(r"idx3-ubyte(?:\.gz)?\Z", re.IGNORECASE)
_LARGEST = 1 << 34  # bytes of the pictures in one file
_PIECE = 1 << 20


@dataclass(frozen=True)
class IdxPictures:
    """The pictures of an IDX file: `count` of `width` × `height` bytes, one after the other.

    given: the file. path: the same unpacked, which is removed when the process ends, or the file itself.
    """

    given: Path
    path: Path
    count: int
    height: int
    width: int

    @property
    def size(self) -> int:
        """The bytes of one picture."""
        return self.width * self.height

    @property
    def prefix(self) -> bytes:
        """The header that makes a Netpbm file of a picture's bytes."""
        return b"P5 %d %d 255\n" % (self.width, self.height)

    def name(self, number: int) -> str:
        """The name of a picture, counted from 0, within the file."""
        return f"{number:06}.pgm"

    def offset(self, number: int) -> int:
        """The first byte of a picture in the file at `path`."""
        return 4 + 4 * _SIZES[_PICTURES] + number * self.size


def is_labels(path: Path) -> bool:
    """Whether a file holds the labels of IDX pictures. Raises OSError if it cannot be read."""
    return _beginning(path) == _LABELS


def pictures(path: Path) -> IdxPictures | None:
    """The pictures of a file; None for a file of another kind. Raises OSError if it cannot be read, and LookalikeError
    if it is named as an IDX file and is none, or is truncated or damaged."""
    beginning = _beginning(path)
    if beginning != _PICTURES:
        if _NAMED.search(path.name):
            raise LookalikeError(
                f"{path} is named as pictures in the IDX format, but begins with {beginning.hex(' ') or 'nothing'}, "
                f"not with {_PICTURES.hex(' ')}: only pictures of one byte a pixel are read"
            )
        return None
    unpacked = path if not _is_packed(path) else _unpacked(path, path.stat().st_mtime_ns)
    with unpacked.open("rb") as file:
        count, height, width = _sizes(file, path, _PICTURES)
    found = IdxPictures(path, unpacked, count, height, width)
    if not found.size:
        raise LookalikeError(f"{path} is damaged: its pictures have {width} × {height} pixels")
    _check_length(path, unpacked.stat().st_size, found.offset(count), f"{count:,} pictures of {width} × {height}")
    return found


def labels(of: IdxPictures, others: Collection[Path]) -> list[str]:
    """The labels of pictures, in their order. Their file is called as that of the pictures, with "labels" for "images",
    and lies beside it or is among others; or it is the only other one.

    Raises LookalikeError if there is none, if it is truncated or damaged, or if it has another number of labels.
    """
    stem = of.given.name.removesuffix(".gz").replace("images", "labels").replace("idx3", "idx1")
    named = [
        *(place for end in ("", ".gz") if (place := of.given.with_name(stem + end)) != of.given and place.is_file()),
        *(each for each in others if each.name.removesuffix(".gz") == stem),
    ]
    path = next(iter(named or (others if len(others) == 1 else ())), None)
    if path is None:
        raise LookalikeError(
            f"{of.given} has no labels: put {stem} beside it, name that file too, or give a CSV file with --labels"
        )
    try:
        if not is_labels(path):
            raise LookalikeError(f"{path} is not a file of labels in the IDX format: it must begin {_LABELS.hex(' ')}")
        with _opened(path) as file:
            (count,) = _sizes(file, path, _LABELS)
            values = file.read(count + 1)
            _check_length(path, 8 + len(values), 8 + count, f"{count:,} labels")
    except (OSError, EOFError) as error:
        raise LookalikeError(f"{path} cannot be read: {error}") from error
    if count != of.count:
        raise LookalikeError(f"{of.given} has {of.count:,} pictures, but {path} has {count:,} labels")
    return [str(value) for value in values]


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == _GZIP


def _opened(path: Path) -> BufferedIOBase:
    return gzip.open(path) if _is_packed(path) else path.open("rb")


def _beginning(path: Path) -> bytes:
    try:
        with _opened(path) as file:
            return file.read(4)
    except (EOFError, gzip.BadGzipFile):
        return b""


def _sizes(file: BufferedIOBase, path: Path, kind: bytes) -> tuple[int, ...]:
    """The sizes in the header of a file that is at its beginning."""
    header = file.read(4 + 4 * _SIZES[kind])[4:]
    if len(header) < 4 * _SIZES[kind]:
        raise LookalikeError(f"{path} is truncated: it ends inside its header")
    return struct.unpack(f">{_SIZES[kind]}I", header)


def _check_length(path: Path, length: int, wanted: int, what: str) -> None:
    if length != wanted:
        wrong = "is truncated" if length < wanted else "is damaged: more follows"
        raise LookalikeError(f"{path} {wrong}: its header says {what}, {wanted:,} bytes; it has {length:,}")


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    """A directory that is removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="lookalike-")


@cache
def _unpacked(path: Path, _: int) -> Path:
    """The content of a compressed file, as a file of this process. _: when it was changed."""
    descriptor, name = tempfile.mkstemp(dir=_scratch().name)
    length = 0
    try:
        with gzip.open(path) as packed, os.fdopen(descriptor, "wb") as file:
            count, height, width = _sizes(packed, path, _PICTURES)
            wanted = min(16 + count * height * width, _LARGEST)
            file.write(_PICTURES + struct.pack(">3I", count, height, width))
            while length <= wanted and (piece := packed.read(_PIECE)):
                length += file.write(piece)
    except (EOFError, gzip.BadGzipFile, OSError) as error:
        raise LookalikeError(f"{path} is damaged or truncated: {error}") from error
    return Path(name)
