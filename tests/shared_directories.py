"""Directories that take long to make, made once for all processes of a test run."""

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import shared


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A directory of this name, which the first process that asks makes. Nobody changes it."""
    base = shared(factory)
    made, unfinished = base / name, base / f"{name}.unfinished"
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
        if not made.exists():
            shutil.rmtree(unfinished, ignore_errors=True)  # of a process that failed
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(made)
    return made
