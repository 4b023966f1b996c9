"""A file in an archive, as a value, and the errors of archives and their members. Knows no archive format."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from stages.datum.damage import damage_as, is_damage

DAMAGED_MEMBER = "a damaged archive member"


class BadArchive(Exception):
    """An archive that is refused as a whole; the text is the reason for the user, the same for the same bytes."""


class BadMember(Exception):
    """An unreadable member of a readable archive; the text is the reason for the user."""


@dataclass(frozen=True)
class ArchiveMember:
    """A file in an archive. name: as in the archive. size: bytes. problem: why it cannot be read, or None.

    stream: its bytes from the start, None with a problem; valid until the next member is asked for. Reading it raises
    BadMember where the bytes are damaged.
    """

    name: str
    size: int
    stream: MemberContent | None
    problem: str | None = None


class MemberContent:
    """The bytes of one member, in order."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        """read: gives the next bytes, so many or, at the end, fewer."""
        self._read = read

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end. Raises BadMember."""
        try:
            return self._read(size)
        except Exception as failure:
            if not is_damage(failure):
                raise
            raise BadMember(DAMAGED_MEMBER) from failure


def unsafe_name(name: str) -> str | None:
    """Why a member of that name is refused, or None. Nothing is unpacked, but such a name hides where it came from."""
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:[\\/]", name):
        return "an archive member with an absolute path"
    if ".." in re.split(r"[/\\]", name):
        return 'an archive member with ".." in its path'
    return None


def damage_is_bad_archive(kind: str) -> AbstractContextManager[None]:
    """Turns errors that damaged bytes cause into BadArchive. kind: the format's name, for the reason."""
    return damage_as(lambda _: BadArchive(f"damaged or truncated {kind} archive"))
