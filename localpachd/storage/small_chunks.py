"""Small chunks: rows of one SQLite file, collected in memory and written in batches. Knows no big chunks or files."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from localpachd.sqlite import Readers, shrink, transaction

RENEW = 3600.0
"""Seconds after which putting a chunk again renews its date."""

_BATCH_BYTES = 4 << 20
_BATCH_CHUNKS = 4096
_GATHERED = 500  # chunks asked for in one query
_SWEPT = 1000  # chunks looked at in one step of a sweep

_SCHEMA = """
CREATE TABLE IF NOT EXISTS small (hash BLOB PRIMARY KEY, put REAL NOT NULL, data BLOB NOT NULL);
"""
_INSERT = f"""
INSERT INTO small (hash, put, data) VALUES (?, ?, ?)
ON CONFLICT (hash) DO UPDATE SET put = excluded.put WHERE small.put < excluded.put - {RENEW}
"""


class SmallChunks:
    """The store of one SQLite file. Every method may be called from any thread; one process at a time.

    Readers never wait for a write to become durable.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()  # guards the chunks in memory
        self._gathered: dict[bytes, bytes] = {}
        self._gathered_bytes = 0
        self._in_writing: Mapping[bytes, bytes] = {}
        self._write_lock = threading.Lock()  # held by the thread that changes the file
        self._readers = Readers(self._connect)
        self._writer = self._connect()
        self._writer.execute("PRAGMA journal_mode=WAL")
        self._writer.execute("PRAGMA synchronous=FULL")
        self._writer.executescript(_SCHEMA)

    def put(self, digest: bytes, data: bytes) -> None:
        """Stores a chunk; it is durable after the next `flush`."""
        with self._lock:
            if digest not in self._gathered:
                self._gathered[digest] = data
                self._gathered_bytes += len(data)
            full = self._gathered_bytes >= _BATCH_BYTES or len(self._gathered) >= _BATCH_CHUNKS
        if full:
            self.flush()

    def get(self, digest: bytes) -> bytes | None:
        """The bytes of one chunk, or None if it is not in the store."""
        data = self._in_memory((digest,)).get(digest)
        if data is None:
            with self._readers.one() as conn:
                row = conn.execute("SELECT data FROM small WHERE hash = ?", (digest,)).fetchone()
            data = None if row is None else bytes(row[0])
        return data

    def gather(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """The bytes of the chunks in the store, by hash: several times faster than one by one."""
        found = self._in_memory(digests)
        wanted = [digest for digest in digests if digest not in found]
        with self._readers.one() as conn:
            for start in range(0, len(wanted), _GATHERED):
                some = wanted[start : start + _GATHERED]
                marks = ", ".join("?" * len(some))
                found.update(conn.execute(f"SELECT hash, data FROM small WHERE hash IN ({marks})", some))
        return found

    def flush(self) -> None:
        """Returns when every chunk put so far would survive a power failure."""
        with self._write_lock:
            with self._lock:
                batch, self._gathered, self._gathered_bytes = self._gathered, {}, 0
                self._in_writing = batch
            try:
                if batch:
                    self._write(batch)
            except BaseException:
                with self._lock:
                    self._gathered = {**batch, **self._gathered}
                    self._gathered_bytes = sum(map(len, self._gathered.values()))
                raise
            finally:
                with self._lock:
                    self._in_writing = {}

    def hashes(self) -> Iterator[bytes]:
        """Every durable chunk, in no particular order."""
        with self._readers.one() as conn, closing(conn.execute("SELECT hash FROM small")) as rows:
            yield from (row[0] for row in rows)

    def sweep(self, unused: Callable[[bytes], bool], limit: float) -> int:
        """Deletes the unused chunks put before `limit` (seconds since the epoch), a few at a time, so that no writer
        waits long; returns how many."""
        swept = 0
        last = b""
        with self._readers.one() as conn:
            while rows := conn.execute(
                "SELECT hash FROM small WHERE hash > ? AND put < ? ORDER BY hash LIMIT ?", (last, limit, _SWEPT)
            ).fetchall():
                last = rows[-1][0]
                doomed = [row for row in rows if unused(row[0])]
                if doomed:
                    swept += self._delete(doomed, limit)
        return swept

    def shrink(self) -> None:
        """Returns the free part of the file to the disk, if it is large; call it while nothing else uses the file."""
        with self._write_lock:
            shrink(self._writer)

    def close(self) -> None:
        """Makes everything durable and closes the file."""
        self.flush()
        self._writer.close()
        self._readers.close()

    def _in_memory(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        with self._lock:
            places = (self._gathered, self._in_writing)
            return {digest: place[digest] for place in places for digest in digests if digest in place}

    def _write(self, batch: Mapping[bytes, bytes]) -> None:
        now = time.time()
        with transaction(self._writer):
            self._writer.executemany(_INSERT, ((digest, now, data) for digest, data in batch.items()))

    def _delete(self, doomed: Sequence[tuple[bytes]], limit: float) -> int:
        """A chunk that was put again meanwhile, which renewed its date, stays."""
        with self._write_lock, transaction(self._writer):
            rows = ((digest, limit) for (digest,) in doomed)
            return self._writer.executemany("DELETE FROM small WHERE hash = ? AND put < ?", rows).rowcount

    def _connect(self) -> sqlite3.Connection:
        # The locks and the pool keep a connection to one thread at a time.
        return sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=60)
