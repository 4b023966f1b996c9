"""A localpachd alone on a small disk (a tmpfs), for tests of full ones."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.servers import Localpachd

SIZE = 48 << 20
"""Bytes of the disk."""

MOUNTED = (
    "unshare",
    "--map-root-user",
    "--mount",
    "sh",
    "-c",
    f'mount -t tmpfs -o size={SIZE} tmpfs "$0" && exec "$@"',
)
"""Runs a command with a small disk, which only it sees, at the path of the first argument."""


def can_mount(directory: Path) -> bool:
    return subprocess.run([*MOUNTED, str(directory), "true"], capture_output=True).returncode == 0


@dataclass
class SmallDisk:
    """A localpachd whose root is alone on a small disk."""

    server: Localpachd
    root: Path

    @property
    def seen_root(self) -> Path:
        """The root as this process can see it."""
        return Path("/proc", str(self.server.process.pid), "root") / self.root.relative_to("/")

    @property
    def _ballast(self) -> Path:
        return self.seen_root.parent / "ballast"

    def fill(self) -> None:
        """Leaves no room at all."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while file.write(b"x" * size) == size:
                        pass
                except OSError:
                    continue

    def free(self) -> None:
        """Makes room again."""
        self._ballast.unlink()
