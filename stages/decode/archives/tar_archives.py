"""Members of tar archives, compressed with gzip or not. Reads headers with `tarfile` through a `StreamMeter`, and
nothing to disk."""

from __future__ import annotations

import gzip
import re
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Self, cast

from stages.decode.archives.archive_member import ArchiveMember, BadArchive, MemberContent, damage_is_bad_archive
from stages.decode.archives.stream_meter import StreamMeter, check_totals
from stages.record.file_kinds import FileKind, is_tar_header
from stages.record.file_limits import FileLimits

_HEADER_BYTES_PER_MEMBER = 4096  # what each member's description may add to the limit for all of them

_CHECKSUM = slice(148, 156)
_BLANK = sum(b" " * 8)  # which counts in the checksum's own place
_NUMBERS = re.compile(rb"(?:[0-7]{7}\0){3}([0-7]{11})\0[0-7]{11}\0([0-7]{6})\0 0")
"""From byte 100, a header's fields from the mode to the type as most programs write them: with the size and checksum.
The type is that of a regular file."""

_DEVICES = re.compile(rb"(?:[0-7]{7}\0|\0{8}){2}")
"""From byte 329, the numbers of a device."""


class TarHeader(tarfile.TarInfo):
    """A member's header: of the usual one, which is read in a third of tarfile's time, the name, the size and the type,
    since nobody reads the others. Another has all fields."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """From its block of 512 bytes. Raises tarfile's errors, for the same blocks as tarfile."""
        size = usual_size(buf)
        if size is None:
            return super().frombuf(buf, encoding, errors)
        name, prefix = (text.partition(b"\0")[0].decode(encoding, errors) for text in (buf[:100], buf[345:500]))
        header = cls(f"{prefix}/{name}" if prefix else name)
        header.size = size
        return header


def usual_size(block: bytes | bytearray) -> int | None:
    """The size that a usual header states, in bytes. None for any other block, one with a false checksum included."""
    numbers = _NUMBERS.fullmatch(block, 100, 157)
    if len(block) != tarfile.BLOCKSIZE or numbers is None or _DEVICES.fullmatch(block, 329, 345) is None:
        return None
    counted = sum(block) - sum(block[_CHECKSUM]) + _BLANK
    return int(numbers[1], 8) if counted == int(numbers[2], 8) else None


def tar_members(path: Path, kind: FileKind, limits: FileLimits) -> Iterator[ArchiveMember]:
    """Every file in a tar archive (for Kind.GZIP, compressed); raises BadArchive before the first one. See
    `stages.decode.archives.archive_reader.members`."""
    with damage_is_bad_archive(kind.value):
        kept = _check_tar(path, kind, limits)
    with _open_tar(path, kind) as raw:
        stream = StreamMeter(raw, sys.maxsize, sys.maxsize)
        for info in _tar_infos(_tar_file(stream), stream) if kept is None else kept:
            problem = _tar_problem(info)
            yield ArchiveMember(
                info.name, info.size, None if problem else MemberContent(_Span(raw, info).read), problem
            )


class _Span:
    """The bytes of a regular member, from the archive's own file, which is moved to them. tarfile's `extractfile` reads
    them through two more layers, which take longer than a small member."""

    def __init__(self, raw: BinaryIO, info: tarfile.TarInfo) -> None:
        raw.seek(info.offset_data)
        self._raw = raw
        self._left = info.size

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the member's end. Raises tarfile.ReadError if the archive ends first."""
        size = min(size, self._left)
        found = self._raw.read(size)
        if len(found) < size:
            raise tarfile.ReadError("unexpected end of data")
        self._left -= size
        return found


def _check_tar(path: Path, kind: FileKind, limits: FileLimits) -> list[tarfile.TarInfo] | None:
    """Walks the whole archive. For a tar.gz this decompresses it, the only way to learn how far it expands.

    Returns all members but directories, or None if they are too many to keep.
    """
    size = path.stat().st_size
    kept: list[tarfile.TarInfo] = []
    count = expanded = 0
    with _open_tar(path, kind) as raw:
        if kind is FileKind.GZIP and not is_tar_header(raw.read(tarfile.BLOCKSIZE)):
            raise BadArchive("gzip data that is not a tar archive")
        raw.seek(0)
        stream = StreamMeter(raw, limits.header_bytes, limits.expansion(size))
        for info in _tar_infos(_tar_file(stream), stream):
            if info.size < 0:
                raise BadArchive(f"damaged or truncated {kind.value} archive")
            count += 1
            expanded += info.size
            check_totals(count, expanded, limits, size)
            if count <= limits.kept_headers:
                kept.append(info)
        _check_end(stream, kind)
    if not count:
        raise BadArchive("a tar archive without files")
    return kept if count <= limits.kept_headers else None


def _check_end(stream: StreamMeter, kind: FileKind) -> None:
    """Requires the block of zeros that ends every tar. tarfile accepts anything but a header as the archive's end, and
    the file's end too, so it would miss a truncation between two members.
    """
    if stream.last != bytes(tarfile.BLOCKSIZE):
        raise BadArchive(f"damaged or truncated {kind.value} archive")
    while padding := stream.raw.read(1 << 20):  # to the end, where gzip has its checksum
        stream.check_position()
        if padding.strip(b"\0"):
            raise BadArchive("a tar archive with data after its end")


@contextmanager
def _open_tar(path: Path, kind: FileKind) -> Iterator[BinaryIO]:
    with path.open("rb") as raw:
        if kind is FileKind.TAR:
            yield raw
        else:
            with gzip.GzipFile(fileobj=raw) as unzipped:
                yield cast(BinaryIO, unzipped)


def _tar_file(stream: StreamMeter) -> tarfile.TarFile:
    raw = cast(IO[bytes], stream)
    return tarfile.TarFile(fileobj=raw, tarinfo=TarHeader, encoding="utf-8", errors="surrogateescape")


def _tar_infos(archive: tarfile.TarFile, stream: StreamMeter) -> Iterator[tarfile.TarInfo]:
    """Every member but directories. Forgets each before the next: an archive may have millions."""
    while (info := archive.next()) is not None:
        archive.members.clear()  # type: ignore[attr-defined]  # not in typeshed
        stream.allowance += _HEADER_BYTES_PER_MEMBER
        if not info.isdir():
            yield info


def _tar_problem(info: tarfile.TarInfo) -> str | None:
    if info.issym() or info.islnk():
        return "an archive member that is a link: links are not followed"
    if info.issparse():
        return "a sparse archive member: pack it without sparse files"
    return None if info.isfile() else "an archive member that is not a regular file"
