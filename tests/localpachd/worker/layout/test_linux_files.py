"""Marks of directories, and where thousands of short-lived files lie on the disk."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from localpachd.worker.layout import linux_files
from localpachd.worker.layout.lazy_pipes import LazyPipes
from localpachd.worker.layout.pipe_budget import PipeBudget
from tests.localpachd.worker.bench import Bench


def _shown(directory: Path) -> str:
    """The directory's marks as letters; skips the test where its file system has none."""
    if shutil.which("lsattr") is None:
        pytest.skip("needs lsattr, of e2fsprogs")
    done = subprocess.run(["lsattr", "-d", directory], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("needs a file system with marks")
    return done.stdout.split()[0]


def test_a_mark_is_put_and_taken_and_leaves_the_others(tmp_path: Path) -> None:
    before = _shown(tmp_path)
    linux_files.spread_directories(tmp_path)
    assert set(_shown(tmp_path)) - set(before) == {"T"}
    handle = os.open(tmp_path, os.O_RDONLY)
    linux_files.change_attributes(handle, take=linux_files._SPREAD)
    os.close(handle)
    assert _shown(tmp_path) == before


def test_a_file_system_without_marks_is_no_obstacle() -> None:
    linux_files.spread_directories(Path("/proc/self"))


def test_datums_are_placed_in_a_marked_directory(at_home: Bench) -> None:
    assert _shown(at_home.root)
    task = at_home.sh('lsattr -d "$PFS/.scratch"; ls "$PFS/.scratch"')
    result = at_home.one(task, at_home.input("in", "/f", {"/f": b""}))
    marked, *datums = at_home.said()
    assert "T" in marked.split()[0]
    assert result.id in datums
    assert not any(len(each) == 32 for each in datums)  # the name under which its directory was made


def test_guards_are_made_in_a_marked_directory_and_leave_nothing(tmp_path: Path) -> None:
    pipes = LazyPipes(PipeBudget(), tmp_path / "nursery", lambda _: None, lambda _: None)
    for name in ("one", "two"):
        assert pipes.add(f"{tmp_path}/{name}", name, lambda: iter((b"bytes",)))
        pipes.start()
        assert (tmp_path / name).read_bytes() == b"bytes"
        assert len(list((tmp_path / "nursery").iterdir())) == 1
        pipes.clear()
    pipes.close()
    assert list((tmp_path / "nursery").iterdir()) == []
    assert "T" in _shown(tmp_path / "nursery")
