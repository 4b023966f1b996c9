"""Chunks: immutable bytes by their hash, on disk. Knows nothing of files, layers or references to chunks."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from uuid import uuid4

from localpachd import ids
from localpachd.disk import Disk
from localpachd.errors import PachError
from localpachd.ids import Bytes
from localpachd.storage import chunking
from localpachd.storage.filesets import Content
from localpachd.storage.small_chunks import RENEW, SmallChunks
from localpachd.storage.uses import Uses

SMALL = 64 << 10
"""Chunks below this many bytes are rows of one SQLite file; the others are files of their own."""

_BLOCK = 1 << 20  # bytes read at once from a big chunk


class Chunks:
    """The chunk store below one directory. Every method may be called from any thread; one process at a time.

    Small chunks are collected in memory and written in batches; `flush` makes all puts so far durable, and must be
    called before the transaction that refers to them. A power failure can leave damaged chunks without references,
    which must be swept before anything is put again. `uses` tells a sweep which work is in progress. Writes raise
    NoSpace if the `disk` is full.
    """

    def __init__(self, root: Path, disk: Disk | None = None) -> None:
        self.uses = Uses()
        self.disk = disk or Disk(root)
        self._root = root
        root.mkdir(parents=True, exist_ok=True)
        (root / "tmp").mkdir(exist_ok=True)
        for left in (root / "tmp").iterdir():  # of a process that was killed while writing
            left.unlink()
        self._lock = threading.Lock()
        self._unsynced: dict[Path, None] = {}  # big chunks and then their directories, to be made durable
        self._sync_lock = threading.Lock()  # held by the thread that does so
        self._small = SmallChunks(root / "small.sqlite")

    def put(self, *parts: Bytes) -> bytes:
        """Stores one chunk of at most `ids.CHUNK_SIZE` bytes, which may lie in parts; returns its 32-byte hash."""
        digest = ids.chunk_hash(*parts)
        with self.disk.writing():
            if sum(map(len, parts)) >= SMALL:
                self._put_big(digest, parts)
            else:
                self._small.put(digest, b"".join(parts))
        return digest

    def get(self, digest: bytes) -> bytes:
        """The bytes of one chunk. Raises PachError when it is not in the store."""
        data = self._small.get(digest)
        if data is not None:
            return data
        try:
            return self._path(digest).read_bytes()
        except FileNotFoundError:
            raise _missing(digest) from None

    def gather(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """The bytes of many small chunks at once, by hash: several times faster than one by one."""
        found = self._small.gather(digests)
        found.update((digest, self.get(digest)) for digest in digests if digest not in found)
        return found

    def flush(self) -> None:
        """Returns when every chunk put so far would survive a power failure.

        After a chunk could not be written, raises OSError for every caller until that chunk is put again.
        """
        with self.disk.writing():
            self._small.flush()
            with self._sync_lock:  # a caller with nothing left to do waits for those still syncing
                self._sync_all()

    def _sync_all(self) -> None:
        with self._lock:
            unsynced, self._unsynced = self._unsynced, {}
        for path in unsynced:
            try:
                _sync(path)
            except BaseException:
                with self._lock:
                    if path.is_file():
                        path.unlink()  # its bytes cannot be trusted, even if a second try succeeds
                    self._unsynced = {**unsynced, **self._unsynced}
                raise

    def store(self, pieces: Iterable[bytes]) -> Content:
        """Stores a file from its bytes in any pieces, holding one chunk at a time in memory."""
        return self.append(Content(0, ()), pieces)

    def append(self, content: Content, pieces: Iterable[bytes]) -> Content:
        """The content of a file with `pieces` appended: the same as storing all of it at once."""
        hashes = list(content.chunks)
        size = content.size
        if size % ids.CHUNK_SIZE:
            last = self.get(hashes.pop())
            size -= len(last)
            pieces = chain((last,), pieces)
        for parts in chunking.split(pieces):
            size += sum(map(len, parts))
            hashes.append(self.put(*parts))
        return Content(size, tuple(hashes))

    def concatenate(self, first: Content, second: Content) -> Content:
        """The content of one file followed by another."""
        if not first.size or not second.size:
            return second if second.size else first
        return self.append(first, self.read(second))

    def read(self, content: Content, offset: int = 0) -> Iterator[bytes]:
        """The bytes of a file from `offset`, in pieces of at most 1 MiB. Raises PachError if a chunk is missing."""
        first, skip = divmod(offset, ids.CHUNK_SIZE)
        for position in range(first, len(content.chunks)):
            length = min(ids.CHUNK_SIZE, content.size - position * ids.CHUNK_SIZE)
            yield from self._blocks(content.chunks[position], length, skip)
            skip = 0

    def hashes(self) -> Iterator[bytes]:
        """Every chunk in the store, in no particular order."""
        self.flush()
        yield from self._small.hashes()
        yield from (digest for digest, _ in self._big())

    def check(self, begin: bytes = b"", end: bytes = b"", read: bool = False) -> int:
        """Counts the chunks with hashes from `begin` to `end`, inclusive (b"" means no bound). With `read`, reads each
        and compares it with its hash: PachError for the first damaged one."""
        count = 0
        for digest in self.hashes():
            if digest < begin or (end and digest > end):
                continue
            if read and ids.chunk_hash(self.get(digest)) != digest:
                raise PachError(f"chunk {digest.hex()} is damaged: its bytes are not those that were stored")
            count += 1
        return count

    def sweep(self, live: Iterable[bytes], before: float | None = None) -> int:
        """Deletes the chunks that are not in `live`; returns how many.

        With `before` (seconds since the epoch), chunks stay that were put since, or less than an hour earlier: work in
        progress may be about to refer to them. None is safe only while nothing writes.
        """
        self.flush()
        limit = float("inf") if before is None else before - RENEW
        with closing(sqlite3.connect("", isolation_level=None)) as known:  # in memory, or on disk if it is large
            known.execute("CREATE TABLE live (hash BLOB PRIMARY KEY) WITHOUT ROWID")
            known.execute("BEGIN")
            known.executemany("INSERT OR IGNORE INTO live VALUES (?)", ((digest,) for digest in live))
            known.execute("COMMIT")

            def unused(digest: bytes) -> bool:
                return known.execute("SELECT 1 FROM live WHERE hash = ?", (digest,)).fetchone() is None

            swept = self._small.sweep(unused, limit)
            return swept + sum(self._delete_big(path, limit) for digest, path in self._big() if unused(digest))

    def shrink(self) -> None:
        """Returns the space of swept small chunks to the disk; call it while nothing else uses the store."""
        self._small.shrink()

    def close(self) -> None:
        """Makes everything durable and closes the files; call it when nothing uses the store any more."""
        self.flush()
        self._small.close()

    def _put_big(self, digest: bytes, parts: Sequence[Bytes]) -> None:
        path = self._path(digest)
        # By the clock of `uses`: the file system's own is behind it now and then.
        now = time.time()
        with self._lock:  # so that a sweep does not delete the chunk found here
            try:
                if path.stat().st_mtime < now - RENEW:
                    os.utime(path, (now, now))
                return
            except FileNotFoundError:
                pass
        temporary = self._root / "tmp" / uuid4().hex
        try:
            with open(temporary, "xb", opener=_private) as file:
                file.writelines(parts)
            os.utime(temporary, (now, now))
            path.parent.mkdir(exist_ok=True)
            with self._lock:  # so that a caller that finds it here also finds it in _unsynced
                temporary.replace(path)
                self._unsynced.update(dict.fromkeys((path, path.parent, self._root)))
        finally:
            temporary.unlink(missing_ok=True)

    def _delete_big(self, path: Path, limit: float) -> bool:
        with self._lock:  # so that a put does not find a chunk about to be deleted
            old = path.stat().st_mtime < limit
            if old:
                path.unlink()
            return old

    def _blocks(self, digest: bytes, length: int, skip: int) -> Iterator[bytes]:
        if length < SMALL:
            yield self.get(digest)[skip:]
            return
        try:
            with self._path(digest).open("rb") as file:
                file.seek(skip)
                while block := file.read(_BLOCK):
                    yield block
        except FileNotFoundError:
            raise _missing(digest) from None

    def _big(self) -> Iterator[tuple[bytes, Path]]:
        for path in self._root.glob("??/*"):
            yield bytes.fromhex(path.parent.name + path.name), path

    def _path(self, digest: bytes) -> Path:
        name = digest.hex()
        return self._root / name[:2] / name[2:]


def _missing(digest: bytes) -> PachError:
    return PachError(f"chunk {digest.hex()} is not in the store; was its file deleted by hand?")


def _private(path: str, flags: int) -> int:
    """Opens a new file that only its owner may read, whatever the umask."""
    return os.open(path, flags, 0o600)


def _sync(path: Path) -> None:
    """Makes a file or a directory durable. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
