"""Directories as values."""

from pathlib import Path


def tree(root: Path) -> dict[str, bytes]:
    """The files below a directory, by their paths in it."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
