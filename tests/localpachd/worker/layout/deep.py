"""Trees that are deeper than any path is long. Removes nothing."""

import os
from pathlib import Path


def deep(top: Path, depth: int, name: str) -> None:
    """Makes so many directories, each within the one before, with a file in each."""
    holder = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=holder)
        inner = os.open(name, os.O_RDONLY, dir_fd=holder)
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=inner))
        os.close(holder)
        holder = inner
    os.close(holder)
