"""A directory of this process for the files that targets read."""

import tempfile
from functools import cache
from pathlib import Path


@cache
def _directory() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="lookalike-fuzz-")


def scratch() -> Path:
    """The directory. It goes when Python ends."""
    return Path(_directory().name)
