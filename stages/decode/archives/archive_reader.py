"""An archive on disk as a sequence of members.

An archive is taken whole or refused whole: `members` checks all of it against the limits before it yields anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stages.decode.archives.archive_member import ArchiveMember
from stages.decode.archives.tar_archives import tar_members
from stages.decode.archives.zip_archives import zip_members
from stages.record.file_kinds import FileKind
from stages.record.file_limits import FileLimits


def members(path: Path, kind: FileKind, limits: FileLimits) -> Iterator[ArchiveMember]:
    """Every member of the archive at `path` except directories, in the archive's order.

    Raises BadArchive, before the first member, if the archive is damaged, truncated or empty, or exceeds the limits.
    """
    yield from zip_members(path, limits) if kind is FileKind.ZIP else tar_members(path, kind, limits)
