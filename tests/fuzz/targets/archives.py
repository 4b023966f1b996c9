"""Archives: every member of zip, tar and tar.gz, under limits that small files reach."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterator
from functools import partial
from typing import Any

from stages.decode.archives.archive_member import BadArchive, BadMember, unsafe_name
from stages.decode.archives.archive_reader import members
from stages.record.file_kinds import FileKind
from stages.record.file_limits import FileLimits
from tests.fuzz.scratch import scratch
from tests.fuzz.target import Target
from tests.small_archives import unpadded

_LIMITS = FileLimits(
    picture_bytes=1 << 16,
    members=50,
    header_bytes=1 << 14,
    zip_directory_bytes=1 << 14,
    min_expansion_bytes=1 << 16,
    kept_headers=3,
)
_PIECE = 1000


def _read(kind: FileKind, data: bytes) -> None:
    path = scratch() / "archive"
    path.write_bytes(data)
    count = expanded = 0
    try:
        for member in members(path, kind, _LIMITS):
            count += 1
            assert (member.stream is None) == (member.problem is not None)
            unsafe_name(member.name)
            expanded += _length(member.stream, member.size) if member.stream else 0
    except BadArchive as reason:
        assert str(reason)
        assert count == 0, f"refused after {count} members: {reason}"
        return
    assert 0 < count <= _LIMITS.members
    assert expanded <= _LIMITS.expansion(len(data))


def _length(stream: Any, size: int) -> int:
    length = 0
    try:
        while piece := stream.read(_PIECE):
            length += len(piece)
    except BadMember:
        return length
    assert length <= size
    return length


def _tar(format: int, *names: str) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format) as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = 6
            archive.addfile(entry, io.BytesIO(b"abcdef"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "elsewhere"
        archive.addfile(link)
    return unpadded(file.getvalue())


def _tars() -> Iterator[bytes]:
    yield _tar(tarfile.USTAR_FORMAT, "a.png", "b/c.png")
    yield _tar(tarfile.PAX_FORMAT, "é.png")
    yield _tar(tarfile.GNU_FORMAT, "a" * 120)


def _gzips() -> Iterator[bytes]:
    yield from (gzip.compress(each, mtime=0) for each in _tars())
    yield gzip.compress(b"not a tar", mtime=0)


def _zip(compression: int, *names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), b"abcdef" * 20, compression)
        archive.comment = b"made here"
    return file.getvalue()


def _zips() -> Iterator[bytes]:
    yield _zip(zipfile.ZIP_STORED, "a.png", "b/c.png")
    yield _zip(zipfile.ZIP_DEFLATED, "a.png", "../é.png", "d/")
    yield _zip(zipfile.ZIP_BZIP2, "a")


TARGETS = (
    Target(
        "zip",
        partial(_read, FileKind.ZIP),
        _zips,
        (b"PK\3\4", b"PK\1\2", b"PK\5\6", b"PK\6\6", b"PK\6\7", b"\1\0\x10\0", b"\xff\xff\xff\xff"),
        1024,
    ),
    Target(
        "tar", partial(_read, FileKind.TAR), _tars, (b"ustar\x0000", b"ustar  \0", b"path=", b"size=", b"GNU.sparse.")
    ),
    Target("tar-gz", partial(_read, FileKind.GZIP), _gzips, (b"\x1f\x8b\x08",), 1024),
)
