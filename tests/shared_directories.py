"""Directories that take long to make, made once for all workers of a test run."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A directory of this name, which the first worker that asks makes. Nobody changes it."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    made, unfinished = shared / name, shared / f"{name}.unfinished"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
        if not made.exists():
            shutil.rmtree(unfinished, ignore_errors=True)  # of a worker that failed
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(made)
    return made
