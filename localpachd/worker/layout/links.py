"""What user code sees around its `/pfs`: the files that links out of it lead to. Knows no datums."""

from pathlib import Path
from typing import Protocol


class LinkedFiles(Protocol):
    """Files by the absolute paths that processes see; all raise OSError where there is no such file."""

    def mode(self, path: str) -> int:
        """What lies at a path, as `st_mode` has it; links are not followed."""

    def target(self, path: str) -> str:
        """Where the link at a path leads."""

    def fetch(self, path: str) -> Path:
        """A file or directory, whose path has no links in it, to be read on this machine: itself or a copy."""
