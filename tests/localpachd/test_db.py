"""The database's pool of connections."""

import gc
import sqlite3
from contextlib import ExitStack
from pathlib import Path

from localpachd.db import Database


def connections() -> list[sqlite3.Connection]:
    """The connections of this process. Open files would not do: SQLite may close them late."""
    gc.collect()
    return [each for each in gc.get_objects() if type(each) is sqlite3.Connection]


def test_of_many_readers_only_a_few_connections_are_kept(tmp_path: Path) -> None:
    db = Database(tmp_path / "db.sqlite")
    others = connections()  # held, so that no other test's connection is closed meanwhile

    def readers() -> int:
        return len(connections()) - len(others)

    with ExitStack() as reading:
        for _ in range(20):
            reading.enter_context(db.read()).execute("SELECT COUNT(*) FROM repos").fetchone()
        assert readers() == 20
    assert readers() == 8
    with db.read():
        assert readers() == 8
    db.close()


def test_a_database_of_an_older_version_gets_the_columns_that_it_lacks(tmp_path: Path) -> None:
    Database(tmp_path / "db.sqlite").close()
    old = sqlite3.connect(tmp_path / "db.sqlite")
    old.execute("ALTER TABLE logs DROP COLUMN level")
    old.execute(
        "INSERT INTO logs (ts, project, pipeline, job, datum, worker, user, master, data, message) "
        "VALUES (1, 'default', 'p', '', '', '', 1, 0, '', 'said')"
    )
    old.commit()
    old.close()
    db = Database(tmp_path / "db.sqlite")
    with db.read() as conn:
        assert tuple(conn.execute("SELECT message, level FROM logs").fetchone()) == ("said", 2)
    db.close()
