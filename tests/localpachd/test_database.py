"""The database's pool of connections."""

import _sqlite3
import ctypes
import errno
import gc
import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from localpachd import durable_files
from localpachd.database import Database
from localpachd.errors import FailedPrecondition


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


def test_readers_do_not_hold_the_database(tmp_path: Path) -> None:
    """What one holds, each of them holds: as many times as a download is under way."""
    db = Database(tmp_path / "db.sqlite")

    def fill(conn: sqlite3.Connection) -> None:
        conn.executemany("INSERT INTO facts VALUES (?, ?)", ((f"{n}", "x" * 1000) for n in range(10_000)))

    db.write(fill)
    used = ctypes.CDLL(_sqlite3.__file__).sqlite3_memory_used
    with ExitStack() as readers:
        before = used()
        for _ in range(10):
            conn = readers.enter_context(db.connection())
            assert conn.execute("SELECT SUM(LENGTH(value)) FROM facts").fetchone()[0] >= 10_000_000
        assert 0 < used() - before < 10 * (2 << 20)
    db.close()


def test_writers_that_wait_together_share_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database(tmp_path / "db.sqlite")
    syncing, go_on = threading.Event(), threading.Event()
    syncs = []

    def slow(handle: int) -> None:
        syncs.append(handle)
        syncing.set()
        assert go_on.wait(60)
        os.fdatasync(handle)

    monkeypatch.setattr(durable_files, "sync_data", slow)
    committed = threading.Semaphore(0)

    def insert(name: str) -> None:
        def step(conn: sqlite3.Connection) -> None:
            conn.execute("INSERT INTO projects VALUES (?, '', 0)", (name,))

        db.write(step)
        committed.release()

    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(insert, "first")
        assert syncing.wait(60)
        rest = [pool.submit(insert, str(number)) for number in range(8)]
        while count(db) < 9:  # readers see the steps before they are durable
            pass
        assert not first.done() and not any(each.done() for each in rest)
        go_on.set()
        for each in (first, *rest):
            each.result(60)
    assert len(syncs) == 2
    db.close()


def test_nothing_is_written_on_top_of_what_may_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database(tmp_path / "db.sqlite")

    def insert(name: str) -> None:
        db.write(lambda conn: conn.execute("INSERT INTO projects VALUES (?, '', 0)", (name,)))

    def fail(handle: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    insert("kept")
    with monkeypatch.context() as broken:
        broken.setattr(durable_files, "sync_data", fail)
        with pytest.raises(FailedPrecondition, match="could not be made durable \\(Input/output error\\)"):
            insert("unsure")
    with pytest.raises(FailedPrecondition, match="start localpachd again"):
        insert("refused")
    assert count(db) == 2
    db.close()
    db = Database(tmp_path / "db.sqlite")
    insert("after")
    assert count(db) == 3
    db.close()


def count(db: Database) -> int:
    with db.read() as conn:
        return int(conn.execute("SELECT COUNT(*) FROM projects").fetchone()[0])
