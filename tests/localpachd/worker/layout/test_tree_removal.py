"""Whatever user code leaves behind is deleted, or all but what cannot be."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from localpachd.worker.layout import linux_files
from localpachd.worker.layout.tree_removal import remove
from tests.localpachd.worker.layout.deep import deep


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    made.mkdir()
    return made


@pytest.fixture
def immutable(tree: Path) -> Iterator[Path]:
    """A file, in a directory, both of which are marked as immutable."""
    place = tree / "kept" / "file"
    place.parent.mkdir()
    place.touch()
    try:
        marked = [subprocess.run(["chattr", "+i", each], check=False).returncode for each in (place, place.parent)]
        if any(marked):
            pytest.skip("needs root, and a file system with marks")
        yield place
    finally:
        for each in (place.parent, place):
            subprocess.run(["chattr", "-i", each], check=False, stderr=subprocess.DEVNULL)


def test_thousands_of_nested_directories(tree: Path) -> None:
    deep(tree, 1500, "directory-with-a-long-name" * 3)
    remove(tree)
    assert not tree.exists()


def test_files_of_every_kind_and_links_are_not_followed(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "b" / "file").touch()
    (tree / "a" / "link").symlink_to(outside)
    (tree / "link").symlink_to(outside)
    os.mkfifo(tree / "a" / "pipe")
    closed = tree / "closed"
    (closed / "below").mkdir(parents=True)
    (closed / "below").chmod(0)
    closed.chmod(0)
    remove(tree)
    assert not tree.exists()
    assert [each.name for each in outside.iterdir()] == ["file"]
    link = tmp_path / "link"
    link.symlink_to(outside)
    remove(link)
    assert not link.is_symlink()
    assert outside.is_dir()


def test_absence_is_no_error(tmp_path: Path) -> None:
    remove(tmp_path / "missing")
    remove(tmp_path / "missing" / "below")


def test_immutable_files_and_directories(tree: Path, immutable: Path) -> None:
    remove(tree)
    assert not tree.exists()


def test_a_file_that_stays_keeps_nothing_else(tree: Path, immutable: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep(tree, 20, "deep")
    (tree / "other").write_text("other")
    with monkeypatch.context() as patched:
        patched.setattr(linux_files, "LOCKED", 0)  # as for a user who may not change marks
        with pytest.raises(PermissionError) as caught:
            remove(tree)
    assert caught.value.filename == str(tree / "kept")
    assert [each.name for each in tree.iterdir()] == ["kept"]
    remove(tree)
    assert not tree.exists()
