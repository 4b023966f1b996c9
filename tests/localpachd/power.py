"""A disk whose power can be cut: an ext4 image on a loop device. A cut keeps what the file system has written to the
image so far, and drops what only the system's memory holds. Needs root."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

_SIZE = 192 << 20
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

    def __init__(self, directory: Path, held: contextlib.ExitStack) -> None:
        self._directory = directory
        self._held = held
        self._image = directory / "image"
        with self._image.open("wb") as file:
            file.truncate(_SIZE)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", self._image], check=True)
        self.root = self._mounted(self._image, "commit=300")
        self.variables: dict[str, str] = {}
        """Those that programs must have which use the disk."""

    def cut(self) -> Path:
        """The directory with what a power failure would leave now. The programs that use the disk must be gone, so that
        the copy shows one moment."""
        number = len(list(self._directory.glob("cut*.image")))
        image = self._directory / f"cut{number}.image"
        unsynced = self.root / f"unsynced{number}"
        unsynced.write_bytes(b"never synced")
        shutil.copyfile(self._image, image)
        after = self._mounted(image, "commit=300")
        assert not (after / unsynced.name).exists(), "the cut kept what was never synced: it proves nothing"
        return after

    def _mounted(self, image: Path, options: str) -> Path:
        place = image.with_suffix(".mounted")
        place.mkdir()
        subprocess.run(["mount", "-o", f"loop,{options}", image, place], check=True)
        self._held.callback(partial(subprocess.run, ["umount", "--lazy", str(place)], check=True))
        return place


@contextlib.contextmanager
def disk(directory: Path) -> Iterator[PowerDisk]:
    """A disk whose image lies in a directory; it is unmounted at the end."""
    with contextlib.ExitStack() as held:
        yield PowerDisk(directory, held)
