"""An archive on disk as a sequence of members.

An archive is taken whole or refused whole: `members` checks all of it against the limits before it yields anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stages.decode.archives.member import Member
from stages.decode.archives.tarfiles import tar_members
from stages.decode.archives.zipfiles import zip_members
from stages.record.kinds import Kind
from stages.record.limits import Limits


def members(path: Path, kind: Kind, limits: Limits) -> Iterator[Member]:
    """Every member of the archive at `path` except directories, in the archive's order.

    Raises BadArchive, before the first member, if the archive is damaged, truncated or empty, or exceeds the limits.
    """
    yield from zip_members(path, limits) if kind is Kind.ZIP else tar_members(path, kind, limits)
