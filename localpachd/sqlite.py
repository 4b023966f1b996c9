"""SQLite as every room uses it: one writer's transactions, syncs that writers share, a pool of readers, small files.

Knows no table.
"""

import logging
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from localpachd import durable_files
from localpachd.errors import FailedPrecondition

_IDLE = 8
"""Connections that are kept open for the next reader. Each has memory of its own."""

_FREE = 0.2
"""The share of a file that may be free."""

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_log = logging.getLogger(__name__)


def open_existing(path: Path, mode: str = "rw", patience: float = 60) -> "closing[sqlite3.Connection]":
    """A connection, until the block ends, to a file that must exist and that another process may be writing: `mode` is
    ro or rw, `patience` in seconds."""
    return closing(sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=patience))


def error_kind(error: sqlite3.Error) -> int:
    """The part of the error's code that names its kind; 0 for none."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error says that the file is damaged, or none of SQLite's."""
    return error_kind(error) in _DAMAGE


@dataclass(frozen=True, slots=True)
class FileUsage:
    """The bytes of a `file` on the disk, those of its pages that are in `use`, and those of its `log` of changes."""

    file: int
    use: int
    log: int


def file_usage(conn: sqlite3.Connection, path: Path) -> FileUsage:
    """The bytes of the file of a connection. Takes microseconds, whatever its size."""
    page, pages, free = (
        int(conn.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_size", "page_count", "freelist_count")
    )
    log = path.with_name(f"{path.name}-wal")
    return FileUsage(path.stat().st_size, page * (pages - free), log.stat().st_size if log.exists() else 0)


class ReaderPool:
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


class SharedSync:
    """Makes the transactions of one database in WAL mode durable: those that wait at the same time share one sync of
    the log, during which others can commit. Thread-safe.

    The database's own connections have synchronous=NORMAL, which syncs before and after each checkpoint, but not at
    each commit. Transactions are durable in their order, since SQLite reads the log to its first damaged frame.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        # SQLite has no locks on the log: the file may be opened and closed beside it.
        self._log = os.open(f"{database}-wal", os.O_RDONLY)
        self._turn = threading.Lock()
        self._committed = 0
        self._durable = 0
        self._failed = ""

    def committed(self) -> int:
        """Counts a transaction that was just committed; the caller is the only writer. Returns its number."""
        self._committed += 1
        return self._committed

    @property
    def last(self) -> int:
        """The number of the last transaction."""
        return self._committed

    def wait(self, number: int) -> None:
        """Returns when a transaction and those before it would survive a power failure; see `check` for failures."""
        with self._turn:  # all that queue up here while one syncs are served by the next sync
            if self._durable >= number:
                return
            self.check()
            up_to = self._committed
            try:
                durable_files.sync_data(self._log)
            except OSError as error:
                self._failed = error.strerror or str(error)
                self.check()
            self._durable = up_to

    def check(self) -> None:
        """Raises FailedPrecondition once a sync has failed. The system may have dropped what it could not write, so a
        later sync that succeeds proves nothing, and nothing may be written on top."""
        if self._failed:
            raise FailedPrecondition(
                f"{self._database} could not be made durable ({self._failed}), so nothing more is written to it: check "
                "the disk, and start localpachd again"
            )

    def close(self) -> None:
        """Closes the log; call it after the last use of the database."""
        os.close(self._log)


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


@contextmanager
def snapshot(conn: sqlite3.Connection) -> Iterator[None]:
    """Lets a connection see one unchanging snapshot until the block ends."""
    try:
        conn.execute("BEGIN")
        yield
    finally:
        if conn.in_transaction:  # SQLite itself ends it after some failures
            conn.execute("ROLLBACK")


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
