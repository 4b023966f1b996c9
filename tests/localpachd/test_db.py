import gc
import sqlite3
from contextlib import ExitStack
from pathlib import Path

from localpachd.db import Database


def connections() -> int:
    """How many connections this process has."""
    gc.collect()
    return sum(isinstance(each, sqlite3.Connection) for each in gc.get_objects())


def test_of_many_readers_only_a_few_connections_are_kept(tmp_path: Path) -> None:
    db = Database(tmp_path / "db.sqlite")
    alone = connections()
    with ExitStack() as reading:
        for _ in range(20):
            reading.enter_context(db.read()).execute("SELECT COUNT(*) FROM repos").fetchone()
        assert connections() == alone + 20
    assert connections() == alone + 8
    with db.read():
        assert connections() == alone + 8
    db.close()
