"""Paths inside a file set: valid ones, their stored form, and the bounds of ranges."""

import re

from localpachd.errors import PachError
from speclang.paths import clean

__all__ = ["after", "bare", "clean", "directory", "validate"]

LONGEST = 4096
"""Characters of a path, as many as Linux allows: a longer one could not be put into /pfs, and each of its directories
costs the memory of its whole path."""

_PRINTABLE = re.compile(r"[ -~]+")
_GLOBBING = re.compile(r"[*?\[\]{}!()@+^]")


def validate(path: str) -> None:
    """Refuses a path that PFS cannot hold, with the real server's texts (`src/server/pfs/server/paths.go`).

    Raises PachError: longer than any path of Linux, outside printable ASCII, a globbing character, or a `.` or `..`
    element.
    """
    if len(path) > LONGEST:
        raise PachError(f"path ({path[:100]}…) invalid: longer than {LONGEST} characters")
    if _PRINTABLE.fullmatch(path) is None:
        raise PachError(f"path ({path}) invalid: only printable ASCII characters allowed")
    found = _GLOBBING.search(path)
    if found is not None:
        raise PachError(f"path ({path}) invalid: globbing character ({found[0]}) not allowed in path")
    if any(element in (".", "..") for element in path.split("/")):
        raise PachError(f"path ({path}) invalid: relative file paths are not allowed")


def directory(path: str) -> str:
    """The form of a directory: always one trailing slash."""
    return path if path.endswith("/") else path + "/"


def bare(path: str) -> str:
    """A path without the slash of a directory; the root stays "/"."""
    return path[:-1] if len(path) > 1 and path.endswith("/") else path


def after(prefix: str) -> str | None:
    """The least string above every string that starts with `prefix`; None if there is none."""
    for position in range(len(prefix) - 1, -1, -1):
        point = ord(prefix[position])
        if point < 0x10FFFF:
            # The surrogates between U+D7FF and U+E000 are not characters.
            return prefix[:position] + chr(0xE000 if point == 0xD7FF else point + 1)
    return None
