"""The files of this machine that links out of `/pfs` lead to. Knows no datums."""

from pathlib import Path


class MachineFiles:
    """The linked files of a process of this machine: the files themselves."""

    def mode(self, path: str) -> int:
        """As `links.LinkedFiles` says."""
        return Path(path).lstat().st_mode

    def target(self, path: str) -> str:
        """As `links.LinkedFiles` says."""
        return str(Path(path).readlink())

    def fetch(self, path: str) -> Path:
        """As `links.LinkedFiles` says."""
        return Path(path)
