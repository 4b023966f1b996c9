"""The disk space of a directory."""

from pathlib import Path

from benchmarks.kit import disk


def test_hard_links_are_counted_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(2**20))
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    (tmp_path / "c").symlink_to(tmp_path / "a")
    assert disk.mib(tmp_path) == 1.0
