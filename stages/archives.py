"""Members of zip, tar and tar.gz archives, one after the other, without ever writing one to disk.

An archive is taken whole or not at all: `members` looks at all of it, against the limits, before it yields anything.
Knows nothing of what the members hold.
"""

from __future__ import annotations

import errno
import gzip
import io
import re
import stat
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, cast

from stages.kinds import Kind, is_tar_header
from stages.limits import MAX_HEADER_BYTES, MAX_MEMBERS, MAX_ZIP_DIRECTORY_BYTES, expansion_limit

_HEADER_BYTES_PER_MEMBER = 4096  # what each member's description may add to MAX_HEADER_BYTES of them all
_REMEMBERED = 4096  # members of a tar whose descriptions are kept from the check, since reading them costs so much


class BadArchive(Exception):
    """An archive nothing is taken from; the text is the reason for the user, the same for the same bytes."""


class BadMember(Exception):
    """A member that cannot be read, in an archive that else can; the text is the reason for the user."""


@dataclass(frozen=True)
class Member:
    """A file in an archive. name: as the archive has it. size: bytes. problem: why it cannot be read, or None.

    stream: its bytes from the start, None with a problem; valid until the next member is asked for. Reading it raises
    BadMember where the bytes are damaged.
    """

    name: str
    size: int
    stream: Content | None
    problem: str | None = None


class Content:
    """The bytes of one member, in order."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end. Raises BadMember."""
        try:
            return self._raw.read(size)
        except Exception as failure:
            if not _is_damage(failure):
                raise
            raise BadMember("a damaged archive member") from failure


def members(path: Path, kind: Kind) -> Iterator[Member]:
    """Every member of the archive at `path` that is no directory, in the archive's order.

    Raises BadArchive, before the first member, where the archive is damaged, truncated or empty, or expands too far.
    """
    yield from _zip_members(path) if kind is Kind.ZIP else _tar_members(path, kind)


def unsafe_name(name: str) -> str | None:
    """Why a member of that name is refused, or None. Nothing is unpacked, but such a name hides where it came from."""
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:[\\/]", name):
        return "an archive member with an absolute path"
    if ".." in re.split(r"[/\\]", name):
        return 'an archive member with ".." in its path'
    return None


def _is_damage(failure: Exception) -> bool:
    """Whether the archive's bytes are to blame. The archive modules raise anything on hostile ones; what remains is the
    machine's own: too little memory, a disk that cannot be read.
    """
    if isinstance(failure, OSError):
        return failure.errno in (None, errno.EINVAL)  # EINVAL: a seek to a nonsensical offset
    return not isinstance(failure, MemoryError)


@contextmanager
def _damage_is_bad_archive(what: str) -> Iterator[None]:
    try:
        yield
    except BadArchive:
        raise
    except Exception as failure:
        if not _is_damage(failure):
            raise
        raise BadArchive(f"damaged or truncated {what} archive") from failure


def _check_totals(count: int, expanded: int, limit: int) -> None:
    if count > MAX_MEMBERS:
        raise BadArchive(f"more than {MAX_MEMBERS:,} members")
    if expanded > limit:
        raise BadArchive(f"expands to more than {limit:,} bytes")


def _zip_members(path: Path) -> Iterator[Member]:
    limit = expansion_limit(path.stat().st_size)
    with path.open("rb") as raw:
        with _damage_is_bad_archive("zip"):
            stream = _Meter(raw, MAX_ZIP_DIRECTORY_BYTES, sys.maxsize)
            archive = zipfile.ZipFile(cast(IO[bytes], stream))
            infos = [each for each in archive.infolist() if not each.is_dir()]
        # The sizes may lie, but zipfile reads no more of a member than its size says.
        _check_totals(len(infos), sum(each.file_size for each in infos), limit)
        if not infos:
            raise BadArchive("a zip archive without files")
        stream.allowance = sys.maxsize
        for info in infos:
            yield from _zip_member(archive, info)


def _zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[Member]:
    problem = _zip_problem(info)
    if problem is None:
        try:
            stream = archive.open(info)
        except Exception as failure:
            if not _is_damage(failure):
                raise
            problem = "a damaged archive member"
        else:
            with stream:
                yield Member(info.filename, info.file_size, Content(stream))
            return
    yield Member(info.filename, info.file_size, None, problem)


def _zip_problem(info: zipfile.ZipInfo) -> str | None:
    mode = info.external_attr >> 16
    if stat.S_ISLNK(mode):
        return "an archive member that is a link: links are not followed"
    if stat.S_IFMT(mode) and not stat.S_ISREG(mode):
        return "an archive member that is no file"
    if info.flag_bits & 1:
        return "an encrypted archive member"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "an archive member that is compressed in an unusual way: pack it with deflate"
    return None


def _tar_members(path: Path, kind: Kind) -> Iterator[Member]:
    with _damage_is_bad_archive(kind.value):
        remembered = _check_tar(path, kind)
    with _open_tar(path, kind) as raw:
        stream_of_all = _Meter(raw, sys.maxsize, sys.maxsize)
        archive = _tar_file(stream_of_all)
        for info in _tar_infos(archive, stream_of_all) if remembered is None else remembered:
            problem = _tar_problem(info)
            stream = None if problem else archive.extractfile(info)
            yield Member(info.name, info.size, Content(stream) if stream else None, problem)


def _check_tar(path: Path, kind: Kind) -> list[tarfile.TarInfo] | None:
    """Walks the whole archive: for a tar.gz that is decompressing it, the only way to know how far it expands.

    Returns the members but directories, or None where they are too many to be held.
    """
    limit = expansion_limit(path.stat().st_size)
    remembered: list[tarfile.TarInfo] = []
    count = expanded = 0
    with _open_tar(path, kind) as raw:
        if kind is Kind.GZIP and not is_tar_header(raw.read(tarfile.BLOCKSIZE)):
            raise BadArchive("gzip data that is no tar archive")
        raw.seek(0)
        stream = _Meter(raw, MAX_HEADER_BYTES, limit)
        for info in _tar_infos(_tar_file(stream), stream):
            if info.size < 0:
                raise BadArchive(f"damaged or truncated {kind.value} archive")
            count += 1
            expanded += info.size
            _check_totals(count, expanded, limit)
            if count <= _REMEMBERED:
                remembered.append(info)
        _check_end(stream, kind)
    if not count:
        raise BadArchive("a tar archive without files")
    return remembered if count <= _REMEMBERED else None


def _check_end(stream: _Meter, kind: Kind) -> None:
    """tarfile takes whatever is no header for the archive's end, and the file's end too: it would miss a truncation
    between two members. Here the end is a block of zeros, as every tar has it.
    """
    if stream.last != bytes(tarfile.BLOCKSIZE):
        raise BadArchive(f"damaged or truncated {kind.value} archive")
    while padding := stream.raw.read(1 << 20):  # to the end, where gzip has its checksum
        _check_totals(0, stream.raw.tell(), stream.farthest)
        if padding.strip(b"\0"):
            raise BadArchive("a tar archive with something behind its end")


@contextmanager
def _open_tar(path: Path, kind: Kind) -> Iterator[BinaryIO]:
    with path.open("rb") as raw:
        if kind is Kind.TAR:
            yield raw
        else:
            with gzip.GzipFile(fileobj=raw) as unzipped:
                yield cast(BinaryIO, unzipped)


def _tar_file(stream: _Meter) -> tarfile.TarFile:
    return tarfile.TarFile(fileobj=cast(IO[bytes], stream), encoding="utf-8", errors="surrogateescape")


def _tar_infos(archive: tarfile.TarFile, stream: _Meter) -> Iterator[tarfile.TarInfo]:
    """Every member but directories. Forgets each before the next: an archive may have very many."""
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
    return None if info.isfile() else "an archive member that is no file"


class _Meter:
    """A stream of which no more than `allowance` bytes may be read and nothing past `farthest` be sought.

    The archive modules read descriptions of members whose length the archive states, at once: a hostile one states
    gigabytes. `last` is what the latest read gave.
    """

    def __init__(self, raw: BinaryIO, allowance: int, farthest: int) -> None:
        self.raw = raw
        self.allowance = allowance
        self.farthest = farthest
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        if size > self.allowance:
            raise BadArchive("descriptions of members that are too large")
        self.last = self.raw.read(size if size >= 0 else self.allowance)
        self.allowance -= len(self.last)
        return self.last

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if offset > self.farthest:
            raise BadArchive(f"expands to more than {self.farthest:,} bytes")
        return self.raw.seek(offset, whence)

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.raw.tell()
