"""Small chunks: rows of one SQLite file, collected in memory and written in batches. Knows no big chunks or files."""

import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from localpachd.errors import DataLoss
from localpachd.sqlite import FileUsage, ReaderPool, file_usage, shrink, transaction

_BATCH_BYTES = 4 << 20
_BATCH_CHUNKS = 4096
_GATHERED = 500  # chunks asked for in one query
_SWEPT = 1000  # chunks looked at in one step of a sweep

_SCHEMA = """
CREATE TABLE IF NOT EXISTS small (
    hash BLOB PRIMARY KEY,
    put INTEGER NOT NULL, -- the generation in which it was last put
    data BLOB NOT NULL,
    crc INTEGER NOT NULL -- CRC-32 of the data, which takes a fifth of the hash's time
);
CREATE TABLE IF NOT EXISTS trash (hash BLOB PRIMARY KEY, since REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS generation (number INTEGER NOT NULL);
"""
# The same bytes replace those that are there: they may be damaged.
_INSERT = """
INSERT INTO small (hash, put, data, crc) VALUES (?, ?, ?, ?)
ON CONFLICT (hash) DO UPDATE SET put = excluded.put, data = excluded.data, crc = excluded.crc
WHERE put < excluded.put OR data <> excluded.data OR crc <> excluded.crc
"""


class SmallChunks:
    """The store of one SQLite file. Every method may be called from any thread; one process at a time.

    Readers never wait for a write to become durable. `generation` is that in which chunks are put (see `ActiveUses`).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()  # guards the chunks in memory
        self._gathered: dict[bytes, bytes] = {}
        self._gathered_bytes = 0
        self._in_writing: Mapping[bytes, bytes] = {}
        self._write_lock = threading.Lock()  # held by the thread that changes the file
        self._readers = ReaderPool(self._connect)
        self._writer = self._connect()
        self._writer.execute("PRAGMA journal_mode=WAL")
        self._writer.execute("PRAGMA synchronous=FULL")
        self._make_tables()
        self.generation = self._writer.execute("SELECT number FROM generation").fetchone()[0]
        self.advance()

    def put(self, digest: bytes, data: bytes) -> None:
        """Stores a chunk; it is durable after the next `flush`. Takes it out of the trash, and repairs it."""
        with self._lock:
            if digest not in self._gathered:
                self._gathered[digest] = data
                self._gathered_bytes += len(data)
            full = self._gathered_bytes >= _BATCH_BYTES or len(self._gathered) >= _BATCH_CHUNKS
        if full:
            self.flush()

    def get(self, digest: bytes) -> bytes | None:
        """The bytes of one chunk, or None if it is not in the store. DataLoss if it is damaged."""
        data = self._in_memory((digest,)).get(digest)
        if data is None:
            with self._readers.one() as conn:
                row = conn.execute("SELECT data, crc FROM small WHERE hash = ?", (digest,)).fetchone()
            if row is None:
                return None
            data, crc = row
            _check(digest, data, crc)
        return data

    def gather(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """The bytes of the chunks in the store, by hash: several times faster than one by one. DataLoss if one is
        damaged."""
        found = self._in_memory(digests)
        wanted = [digest for digest in digests if digest not in found]
        with self._readers.one() as conn:
            for start in range(0, len(wanted), _GATHERED):
                some = wanted[start : start + _GATHERED]
                marks = ", ".join("?" * len(some))
                query = f"SELECT hash, data, crc FROM small WHERE hash IN ({marks})"
                for digest, data, crc in conn.execute(query, some):
                    _check(digest, data, crc)
                    found[digest] = data
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
        """Every durable chunk that is not in the trash, in no particular order."""
        with self._readers.one() as conn:
            query = "SELECT hash FROM small WHERE hash NOT IN (SELECT hash FROM trash)"
            with closing(conn.execute(query)) as rows:
                yield from (row[0] for row in rows)

    def advance(self) -> int:
        """Begins the next generation, durably, and returns it."""
        with self._write_lock, transaction(self._writer):
            self._writer.execute("UPDATE generation SET number = number + 1")
            number = int(self._writer.execute("SELECT number FROM generation").fetchone()[0])
        self.generation = number
        return number

    def sweep(self, unused: Callable[[bytes], bool], limit: float, now: float) -> int:
        """Puts into the trash the unused chunks from generations before `limit`, a few at a time, so that no writer
        waits long, and takes the used ones out of it; returns how many were put there, at the time `now`."""
        swept = 0
        last = b""
        with self._readers.one() as conn:
            for (digest,) in conn.execute("SELECT hash FROM trash").fetchall():
                if not unused(digest):
                    self._change("DELETE FROM trash WHERE hash = ?", [(digest,)])
            while rows := conn.execute(
                "SELECT hash FROM small WHERE hash > ? AND put < ? ORDER BY hash LIMIT ?", (last, limit, _SWEPT)
            ).fetchall():
                last = rows[-1][0]
                doomed = [row[0] for row in rows if unused(row[0])]
                if doomed:
                    # A chunk that was put again meanwhile, which renewed its generation, stays.
                    swept += self._change(
                        "INSERT OR IGNORE INTO trash SELECT hash, ? FROM small WHERE hash = ? AND put < ?",
                        [(now, digest, limit) for digest in doomed],
                    )
        return swept

    def correct_trash(self, step: float, now: float) -> None:
        """Moves the times in the trash by the seconds by which the clock was set; none stays later than `now`."""
        with self._readers.one() as conn:
            late = conn.execute("SELECT EXISTS (SELECT 1 FROM trash WHERE since + ? > ?)", (step, now)).fetchone()[0]
        if step or late:
            self._change("UPDATE trash SET since = MIN(since + ?, ?)", [(step, now)])

    def empty_trash(self, before: float) -> int:
        """Deletes what has been in the trash since before a time (seconds since the epoch); returns how many."""
        deleted = 0
        while rows := self._old_trash(before):
            self._change("DELETE FROM small WHERE hash IN (SELECT hash FROM trash WHERE hash = ?)", rows)
            deleted += self._change("DELETE FROM trash WHERE hash = ?", rows)
        return deleted

    def usage(self) -> FileUsage:
        """The bytes of the file."""
        with self._readers.one() as conn:
            return file_usage(conn, self._path)

    def shrink(self) -> None:
        """Returns the free part of the file to the disk, if it is large; call it while nothing else uses the file."""
        with self._write_lock:
            shrink(self._writer)

    def close(self) -> None:
        """Makes everything durable and closes the file."""
        self.flush()
        self._writer.close()
        self._readers.close()

    def _make_tables(self) -> None:
        self._writer.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}COMMIT;")
        self._writer.execute("INSERT INTO generation SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM generation)")

    def _in_memory(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        with self._lock:
            places = (self._gathered, self._in_writing)
            return {digest: place[digest] for place in places for digest in digests if digest in place}

    def _write(self, batch: Mapping[bytes, bytes]) -> None:
        now = self.generation
        with transaction(self._writer):
            rows = ((digest, now, data, zlib.crc32(data)) for digest, data in batch.items())
            self._writer.executemany(_INSERT, rows)
            if self._writer.execute("SELECT EXISTS (SELECT 1 FROM trash)").fetchone()[0]:
                self._writer.executemany("DELETE FROM trash WHERE hash = ?", ((digest,) for digest in batch))

    def _old_trash(self, before: float) -> list[tuple[bytes]]:
        with self._readers.one() as conn:
            return conn.execute("SELECT hash FROM trash WHERE since < ? LIMIT ?", (before, _SWEPT)).fetchall()

    def _change(self, statement: str, rows: Sequence[tuple[object, ...]]) -> int:
        with self._write_lock, transaction(self._writer):
            return self._writer.executemany(statement, rows).rowcount

    def _connect(self) -> sqlite3.Connection:
        # The locks and the pool keep a connection to one thread at a time.
        return sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=60)


def _check(digest: bytes, data: bytes, crc: int) -> None:
    if zlib.crc32(data) != crc:
        raise DataLoss(f"chunk {digest.hex()} is damaged: its bytes are not those that were stored")
