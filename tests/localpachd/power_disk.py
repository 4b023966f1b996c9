"""A disk whose power can be cut: an ext4 image on a loop device. A cut keeps what the file system has written to the
image so far, and drops what only the system's memory holds. Needs root."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

SIZE = 192 << 20
_NEEDED = ("mkfs.ext4", "mount", "umount")


def obstacle() -> str:
    """Why this machine cannot cut the power of a disk, "" if it can."""
    if os.geteuid() != 0:
        return "needs root, to mount a disk image"
    if missing := [name for name in _NEEDED if shutil.which(name) is None]:
        return f"needs {', '.join(missing)}"
    if not Path("/dev/loop-control").exists():
        return "needs loop devices"
    return ""


class PowerDisk:
    """A mounted image; made by `disk`. Its file system commits nothing of its own accord while a test runs."""

    def __init__(self, directory: Path, size: int) -> None:
        self._directory = directory
        self._image = directory / "image"
        with self._image.open("wb") as file:
            file.truncate(size)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", self._image], check=True)
        self._cuts = 0
        self.root = self._mounted(self._image)
        self.variables: dict[str, str] = {}
        """Those that programs must have which use the disk."""

    def cut(self) -> Path:
        """The directory with what a power failure leaves now, which replaces the one before. The programs that use the
        disk must be gone, so that the copy shows one moment."""
        self._cuts += 1
        before, image = self._image, self._directory / f"cut{self._cuts}.image"
        unsynced = self.root / f"unsynced{self._cuts}"
        unsynced.write_bytes(b"never synced")
        shutil.copyfile(before, image)
        subprocess.run(["umount", "--lazy", self.root], check=True)
        before.unlink()
        self._image, self.root = image, self._mounted(image)
        assert not (self.root / unsynced.name).exists(), "the cut kept what was never synced: it proves nothing"
        return self.root

    def close(self) -> None:
        """Unmounts the disk."""
        subprocess.run(["umount", "--lazy", self.root], check=True)

    def _mounted(self, image: Path) -> Path:
        place = image.with_suffix(".mounted")
        place.mkdir()
        subprocess.run(["mount", "-o", "loop,commit=300", image, place], check=True)
        return place


@contextlib.contextmanager
def disk(directory: Path, size: int = SIZE) -> Iterator[PowerDisk]:
    """A disk of so many bytes whose image lies in a directory; it is unmounted at the end."""
    made = PowerDisk(directory, size)
    try:
        yield made
    finally:
        made.close()
