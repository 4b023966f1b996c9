"""The interface to the files outside of `/pfs` that links in it lead to. Knows no datums."""

from pathlib import Path
from typing import Protocol


class LinkedFiles(Protocol):
    """Files by the absolute paths that processes see. All methods raise OSError for a missing file."""

    def mode(self, path: str) -> int:
        """The `st_mode` of the file at a path; links are not followed."""

    def target(self, path: str) -> str:
        """The target of the link at a path."""

    def fetch(self, path: str) -> Path:
        """The file or directory at a path without links, to be read on this machine: itself or a copy."""
