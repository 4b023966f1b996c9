"""What the files of a directory take on disk. Knows nothing of what they are for."""

import stat
from collections.abc import Iterator
from pathlib import Path


def files(directory: Path) -> Iterator[tuple[Path, int]]:
    """Each file below a directory, no links, and the bytes that it takes; one of several names once. Files may go
    meanwhile."""
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
    """All of them together, in MiB."""
    return sum(size for _, size in files(directory)) / 2**20
