"""Members of zip archives. Reads with `zipfile` through a `StreamMeter`; nothing goes to disk."""

from __future__ import annotations

import stat
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from stages.datum.damage import damage_as
from stages.decode.archives.archive_member import (
    DAMAGED_MEMBER,
    ArchiveMember,
    BadArchive,
    BadMember,
    MemberContent,
    damage_is_bad_archive,
)
from stages.decode.archives.stream_meter import StreamMeter, check_totals
from stages.record.file_limits import FileLimits

_UTF_8 = 0x800  # the flag of a member whose name is in UTF-8


def zip_members(path: Path, limits: FileLimits) -> Iterator[ArchiveMember]:
    """Every file in a zip archive; raises BadArchive before the first one. See
    `stages.decode.archives.archive_reader.members`."""
    with path.open("rb") as raw:
        with damage_is_bad_archive("zip"):
            stream = StreamMeter(raw, limits.zip_directory_bytes, sys.maxsize)
            archive = zipfile.ZipFile(cast(IO[bytes], stream))
            infos = [each for each in archive.infolist() if not each.is_dir()]
        # The sizes may lie, but zipfile reads no more of a member than its size says.
        check_totals(len(infos), sum(each.file_size for each in infos), limits, path.stat().st_size)
        if not infos:
            raise BadArchive("a zip archive without files")
        stream.allowance = sys.maxsize
        for info in infos:
            yield from _zip_member(archive, info)


def _zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[ArchiveMember]:
    problem = _zip_problem(info)
    name = _name(info)
    if problem is None:
        try:
            with damage_as(lambda _: BadMember(DAMAGED_MEMBER)):
                stream = archive.open(info)
        except BadMember:
            problem = DAMAGED_MEMBER
        else:
            with stream:
                yield ArchiveMember(name, info.file_size, MemberContent(stream.read))
            return
    yield ArchiveMember(name, info.file_size, None, problem)


def _name(info: zipfile.ZipInfo) -> str:
    """A member's name. Programs such as macOS' write UTF-8 without the flag that says so, where code page 437 is meant
    by the standard; its names are seldom UTF-8 by chance."""
    if info.flag_bits & _UTF_8:
        return info.filename
    try:
        return info.filename.encode("cp437").decode()
    except UnicodeError:
        return info.filename


def _zip_problem(info: zipfile.ZipInfo) -> str | None:
    mode = info.external_attr >> 16
    if stat.S_ISLNK(mode):
        return "an archive member that is a link: links are not followed"
    if stat.S_IFMT(mode) and not stat.S_ISREG(mode):
        return "an archive member that is not a regular file"
    if info.flag_bits & 1:
        return "an encrypted archive member"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "an archive member that is compressed in an unusual way: pack it with deflate"
    return None
