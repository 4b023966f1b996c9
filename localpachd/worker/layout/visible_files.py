"""Paths as user code sees them: where links lead, and where this machine has what is there, also outside of `/pfs`.

Knows no datums.
"""

import errno
import os
import posixpath
import stat
from pathlib import Path
from typing import Protocol

_MOST_LINKS = 40  # as Linux


class LinkedFiles(Protocol):
    """Files by the absolute paths that processes see. All methods raise OSError for a missing file."""

    def mode(self, path: str) -> int:
        """The `st_mode` of the file at a path; links are not followed."""

    def target(self, path: str) -> str:
        """The target of the link at a path."""

    def fetch(self, path: str) -> Path:
        """The file or directory at a path without links, to be read on this machine: itself or a copy."""


class VisibleFiles:
    """The files that user code sees: `/pfs`, which is `pfs` on this machine and `shown` for processes, and `others`.

    Thousands of links may lead into one directory, so directories are resolved once: serves one look at files that no
    longer change. All paths are texts for the same reason.
    """

    def __init__(self, pfs: Path, shown: str, others: LinkedFiles) -> None:
        self._pfs = str(pfs)
        self._shown = shown
        self._others = others
        self._directories: dict[str, tuple[str, int]] = {}  # without links, and the links that led there

    def path(self, place: str) -> str:
        """The path of a file in `/pfs` as user code sees it, from its path on this machine."""
        return self._shown + place.removeprefix(self._pfs)

    def here(self, path: str) -> str:
        """The path where this machine can read a file, from its absolute path without links as user code sees it.
        Raises OSError."""
        return self._in_pfs(path) or str(self._others.fetch(path))

    def resolve(self, path: str) -> str:
        """The path without links that an absolute path leads to, both as user code sees them. Raises OSError."""
        directory, _, name = path.rpartition("/")
        if directory not in self._directories:
            self._directories[directory] = self._walked(directory, "/", 0)
        return self._walked(name, *self._directories[directory])[0]

    def _walked(self, path: str, current: str, links: int) -> tuple[str, int]:
        """The end of a path that begins at `current`, and the number of links up to there."""
        rest = path.split("/")[::-1]
        while rest:
            name = rest.pop()
            if name in ("", "."):
                continue
            if name == "..":
                current = posixpath.dirname(current)
                continue
            step = posixpath.join(current, name)
            here = self._in_pfs(step)
            if here is None and self._shown.startswith(f"{step}/"):  # the server's root, of which they see this alone
                current = step
                continue
            if not stat.S_ISLNK(self._others.mode(step) if here is None else os.lstat(here).st_mode):
                current = step
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            target = self._others.target(step) if here is None else os.readlink(here)  # noqa: PTH115
            rest += target.split("/")[::-1]
            if target.startswith("/"):
                current = "/"
        return current, links

    def _in_pfs(self, path: str) -> str | None:
        """The path on this machine of a file in `/pfs`, from its absolute path as user code sees it; None for a path
        outside of `/pfs`."""
        if path == self._shown or path.startswith(f"{self._shown}/"):
            return self._pfs + path[len(self._shown) :]
        return None
