"""SQLite as every room uses it: one writer's transactions, a pool of readers, files that shrink. Knows no table."""

import logging
import queue
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_IDLE = 8
"""Connections that are kept open for the next reader. Each has memory of its own."""

_FREE = 0.2
"""The share of a file that may be free."""

_log = logging.getLogger(__name__)


class Readers:
    """Connections for readers, each used by one thread at a time. Thread-safe."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue(_IDLE)

    @contextmanager
    def one(self) -> Iterator[sqlite3.Connection]:
        """A connection for exclusive use until the block ends."""
        try:
            conn = self._idle.get_nowait()
        except queue.Empty:
            conn = self._connect()
        try:
            yield conn
        finally:
            try:
                self._idle.put_nowait(conn)
            except queue.Full:
                conn.close()

    def close(self) -> None:
        """Closes every idle connection; call it when no reader is left."""
        while not self._idle.empty():
            self._idle.get_nowait().close()


@contextmanager
def transaction(conn: sqlite3.Connection) -> Iterator[None]:
    """Runs a block as one transaction, and undoes it if it raises."""
    conn.execute("BEGIN IMMEDIATE")
    try:
        yield
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:  # SQLite itself undoes it after some failures, such as that of a full disk
            conn.execute("ROLLBACK")
        raise


def shrink(conn: sqlite3.Connection) -> None:
    """Returns the free part of a file to the disk, if it is large, by rewriting the file. `conn` is in WAL mode. If the
    disk has no room for that, the file stays as it is."""
    free, pages = (conn.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count"))
    if free <= _FREE * pages:
        return
    try:
        conn.execute("VACUUM")
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError as error:
        _log.warning("cannot shrink a file of SQLite: %s", error)
