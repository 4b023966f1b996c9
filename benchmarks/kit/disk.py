"""The disk space of the files in a directory, whatever they hold."""

import stat
from collections.abc import Iterator
from pathlib import Path


def files(directory: Path) -> Iterator[tuple[Path, int]]:
    """Each regular file below a directory, hard links once, and the bytes it takes on disk. Files that are deleted
    meanwhile are skipped."""
    seen = set[tuple[int, int]]()
    for path in directory.rglob("*"):
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISREG(found.st_mode) and (found.st_dev, found.st_ino) not in seen:
            seen.add((found.st_dev, found.st_ino))
            yield path, found.st_blocks * 512


def mib(directory: Path) -> float:
    """The disk space of all files below a directory, in MiB."""
    return sum(size for _, size in files(directory)) / 2**20
