import os
from contextlib import ExitStack
from pathlib import Path

from localpachd.db import Database


def opened(path: Path) -> int:
    """How often this process has a file open."""
    links = (Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd"))
    return sum(link.is_symlink() and str(link.readlink()) == str(path) for link in links)


def test_of_many_readers_only_a_few_connections_are_kept(tmp_path: Path) -> None:
    db = Database(tmp_path / "db.sqlite")
    alone = opened(tmp_path / "db.sqlite")
    with ExitStack() as reading:
        for _ in range(20):
            reading.enter_context(db.read()).execute("SELECT COUNT(*) FROM repos").fetchone()
        assert opened(tmp_path / "db.sqlite") == alone + 20
    assert opened(tmp_path / "db.sqlite") == alone + 8
    db.close()
    assert opened(tmp_path / "db.sqlite") == 0
