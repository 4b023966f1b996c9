"""Folders of results, marked as lookalike's own: their pictures are of answers, and not for the library."""

from pathlib import Path

MARK = ".lookalike-results"

_WORDS = "The pictures in this folder are results. `lookalike add` and `lookalike sync` leave it out.\n"


def make(directory: Path) -> None:
    """Makes a directory, and marks the topmost that was missing. One that was there may hold anything."""
    missing = [each for each in (directory, *directory.parents) if not each.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    if missing:
        (missing[-1] / MARK).write_text(_WORDS)


def is_marked(directory: Path) -> bool:
    """Whether a directory was made for results."""
    return (directory / MARK).is_file()
