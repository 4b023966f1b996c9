"""Looks at a folder: which files are at rest, and when there is something to sync."""

import os
import shutil
from pathlib import Path

import pytest

from pipelines.library.folder_watcher import FolderWatcher


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a", "b", "deep/c"):
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "folder"


@pytest.fixture
def watch(folder: Path) -> FolderWatcher:
    """A watch that has synced the folder."""
    watch = FolderWatcher(folder)
    assert not watch.look()  # nothing is known to be at rest
    assert watch.look()
    assert watch.is_new
    watch.taken()
    assert not watch.look()
    return watch


def test_a_change_counts_when_it_is_at_rest(watch: FolderWatcher, folder: Path) -> None:
    for content in ("half", "half written", "all of it"):
        (folder / "a").write_text(content)
        (folder / "new").write_text(content)
        assert not watch.look()
        assert watch.restless == {folder / "a", folder / "new"}
    assert watch.look()
    assert not watch.restless
    watch.taken()
    assert not watch.look()


def test_a_file_that_always_changes_keeps_no_other_waiting(watch: FolderWatcher, folder: Path) -> None:
    (folder / "b").unlink()
    (folder / "new").write_text("new")
    watch.look()
    for number in range(3):
        (folder / "a").write_text(f"longer than before {number}" + "!" * number)
        assert watch.look() is (number == 0)
        assert watch.restless == {folder / "a"}
        assert not watch.filling
        watch.taken()
    assert watch.look()


def test_what_is_missing_waits_until_no_more_files_come(watch: FolderWatcher, folder: Path) -> None:
    """As while a backup is copied back."""
    shutil.rmtree(folder)
    folder.mkdir()
    watch.look()
    for name in ("a", "b"):
        (folder / name).write_text(name)
        watch.look()
        assert watch.filling
        watch.taken()
    assert watch.look()
    assert not watch.filling
    watch.taken()
    assert not watch.look()


def test_a_file_in_anothers_place_is_a_change(watch: FolderWatcher, folder: Path) -> None:
    """Even if its name, size and date are the same."""
    (folder / "other").write_text("x")
    os.utime(folder / "other", ns=((folder / "a").stat().st_mtime_ns,) * 2)
    (folder / "other").replace(folder / "a")
    watch.look()
    assert watch.look()


def test_what_operating_systems_leave_is_not_looked_at(watch: FolderWatcher, folder: Path) -> None:
    (folder / ".DS_Store").write_text("x")
    (folder / "__MACOSX").mkdir()
    (folder / "__MACOSX" / "a").write_text("x")
    watch.look()
    assert not watch.look()
