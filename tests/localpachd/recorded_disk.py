"""A directory whose unsynced writes can be dropped, for machines on which no test may mount a disk.

The programs that use it run with `synced.c` preloaded, which records each fsync. A cut leaves the names that their
directory was synced with, and the content that each file was synced with: less than any file system would. Needs Linux
and a compiler of C.
"""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_SOURCE = Path(__file__).with_name("synced.c")


def obstacle() -> str:
    """Why this machine cannot record what is synced, "" if it can."""
    if sys.platform != "linux":
        return "needs Linux"
    if shutil.which("cc") is None:
        return "needs cc, a compiler of C"
    return ""


class RecordedDisk:
    """A directory, `root`, for programs that run with `variables`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._records = directory / "synced"
        self.root = directory / "recorded"
        for each in (self.root, self._records):
            each.mkdir()
        library = directory / "synced.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl", "-pthread"], check=True)
        self.variables = {
            "LD_PRELOAD": str(library),
            "SYNCED_FROM": str(self.root.resolve()),
            "SYNCED_TO": str(self._records),
        }

    def cut(self) -> Path:
        """The directory with what a power failure would leave now. The programs that use it must be gone."""
        after = self._directory / f"cut{len(list(self._directory.glob('cut*')))}"
        self._restore(self._key(self.root), after)
        return after

    def _restore(self, key: str, place: Path) -> None:
        place.mkdir(mode=0o700)
        record = self._records / key
        if not record.is_file():
            return
        for line in record.read_text().splitlines():
            kind, found, name = line.split(" ", 2)
            if kind == "d":
                self._restore(found, place / name)
            elif (self._records / found).exists():
                shutil.copyfile(self._records / found, place / name)
            else:
                (place / name).touch()

    def _key(self, path: Path) -> str:
        return next((each.name for each in self._records.glob(f"{path.stat().st_ino}-*")), "")


@contextlib.contextmanager
def disk(directory: Path) -> Iterator[RecordedDisk]:
    """Such a directory, in another one."""
    yield RecordedDisk(directory)
