"""Chunks: immutable bytes by their hash, on disk. Knows nothing of files, layers or references to chunks."""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path

from localpachd import durable_files, ids
from localpachd.disk import Disk
from localpachd.errors import DataLoss
from localpachd.ids import BytesLike
from localpachd.storage import chunk_splitter
from localpachd.storage.active_uses import ActiveUses
from localpachd.storage.big_chunks import BigChunks, missing
from localpachd.storage.chunk_splitter import HOLE
from localpachd.storage.filesets import FileContent
from localpachd.storage.quota import DiskUsage, Quota
from localpachd.storage.small_chunks import SmallChunks

SMALL = 64 << 10
"""Chunks below this many bytes are rows of one SQLite file; the others are files of their own."""

_TOLERATED = 60.0
"""Seconds by which clocks are corrected all the time; smaller than any age that matters here."""


class ChunkStore:
    """The chunk store below one directory. Every method may be called from any thread; one process at a time.

    Small chunks are collected in memory and written in batches; `flush` makes all puts so far durable, and must be
    called before the transaction that refers to them. All reads are checked: DataLoss for a chunk that is damaged or
    missing. Putting the bytes of a chunk again repairs it. `uses` tells a sweep which work is in progress. Writes raise
    NoSpace if the `disk` is full, and OverQuota if all chunks, those in the trash too, and the bytes of `others` would
    be more than `quota`. The trash is emptied before that.
    """

    def __init__(
        self, root: Path, disk: Disk | None = None, quota: int = 0, others: Callable[[], int] = lambda: 0
    ) -> None:
        self.disk = disk or Disk(root)
        self.quota = Quota(quota, lambda: self._in_use() + others())
        durable_files.make_directory(root)
        self._small = SmallChunks(root / "small.sqlite")
        self.uses = ActiveUses(self._small.generation)
        self._big = BigChunks(root, lambda: self.uses.generation)
        self._clock = _SteadyClock()
        durable_files.sync(root)

    def put(self, *parts: BytesLike) -> bytes:
        """Stores one chunk of at most `ids.CHUNK_SIZE` bytes, which may lie in parts; returns its 32-byte hash."""
        digest = ids.chunk_hash(*parts)
        size = sum(map(len, parts))
        if self.quota.lacks(size):
            self._make_room(digest, size)
        with self.disk.writing():
            if size >= SMALL:
                self._big.put(digest, parts)
            else:
                self._small.put(digest, b"".join(parts))
        self.quota.wrote(size)
        return digest

    def get(self, digest: bytes) -> bytes:
        """The bytes of one chunk."""
        data = self._small.get(digest)
        return self._big.get(digest) if data is None else data

    def gather(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """The bytes of many small chunks at once, by hash: several times faster than one by one."""
        found = self._small.gather(digests)
        found.update((digest, self._big.get(digest)) for digest in digests if digest not in found)
        return found

    def flush(self) -> None:
        """Returns when every chunk put so far would survive a power failure.

        After a chunk could not be written, raises OSError for every caller until that chunk is put again.
        """
        with self.disk.writing():
            self._small.flush()
            self._big.flush()

    def store(self, pieces: Iterable[bytes]) -> FileContent:
        """Stores a file from its bytes in any pieces, holding one chunk at a time in memory."""
        return self.append(FileContent(0, ()), pieces)

    def append(self, content: FileContent, pieces: Iterable[bytes]) -> FileContent:
        """The content of a file with `pieces` appended: the same as storing all of it at once."""
        hashes = list(content.chunks)
        size = content.size
        if size % ids.CHUNK_SIZE:
            last = self.get(hashes.pop())
            size -= len(last)
            pieces = chain((last,), pieces)
        for parts in chunk_splitter.split(pieces):
            size += sum(map(len, parts))
            known = parts[0] is HOLE and hashes[-1:] == [ids.hole_hash()]
            hashes.append(hashes[-1] if known else self.put(*parts))
        return FileContent(size, tuple(hashes))

    def concatenate(self, first: FileContent, second: FileContent) -> FileContent:
        """The content of one file followed by another."""
        if not first.size or not second.size:
            return second if second.size else first
        return self.append(first, self.read(second))

    def read(self, content: FileContent, offset: int = 0, name: str = "") -> Iterator[bytes]:
        """The bytes of a file from `offset`, in pieces of at most 256 KiB. DataLoss says the `name` of the file."""
        first, skip = divmod(offset, ids.CHUNK_SIZE)
        try:
            for position in range(first, len(content.chunks)):
                length = min(ids.CHUNK_SIZE, content.size - position * ids.CHUNK_SIZE)
                yield from self._blocks(content.chunks[position], length, skip)
                skip = 0
        except DataLoss as error:
            raise (DataLoss(f"{name} cannot be read: {error}") if name else error) from error

    def hashes(self) -> Iterator[bytes]:
        """Every chunk in the store, in no particular order."""
        self.flush()
        yield from self._small.hashes()
        yield from self._big.hashes()

    def check(self, begin: bytes = b"", end: bytes = b"", read: bool = False) -> int:
        """Counts the chunks with hashes from `begin` to `end`, inclusive (b"" means no bound). With `read`, reads each
        and compares it with its hash: DataLoss that names all that are damaged."""
        count = 0
        damaged = []
        for digest in self.hashes():
            if digest < begin or (end and digest > end):
                continue
            if read and not self.is_whole(digest):
                damaged.append(digest.hex())
            count += 1
        if damaged:
            raise DataLoss(
                f"{len(damaged)} of {count} chunks are damaged, their bytes are not those that were stored: "
                f"{', '.join(sorted(damaged))}"
            )
        return count

    def is_whole(self, digest: bytes) -> bool:
        """Whether a chunk is in the store, with the bytes that its hash stands for: reads and hashes them."""
        try:
            return ids.chunk_hash(self.get(digest)) == digest
        except DataLoss:
            return False

    def advance(self) -> int:
        """Begins a generation of chunks. Returns the oldest one to which work in progress, or work since the last
        sweep, may be about to refer: `sweep` may take those before it."""
        return self.uses.advance(self._small.advance())

    def sweep(self, live: Iterable[bytes], before: int | None = None) -> int:
        """Moves the chunks that are not in `live` into the trash, and those that are back out of it; returns how many
        were moved there. With `before`, chunks stay that were put in this generation or later; None is safe only while
        nothing writes. The rows without references to them must be durable.

        Times in the trash follow a clock that is set: ahead, it empties nothing early; back, it keeps nothing for long.
        """
        self.flush()
        step = self._clock.follow()
        now = self._clock.now
        for store in (self._small, self._big):
            store.correct_trash(step, now)
        limit = float("inf") if before is None else before
        with closing(sqlite3.connect("", isolation_level=None)) as known:  # in memory, or on disk if it is large
            known.execute("CREATE TABLE live (hash BLOB PRIMARY KEY) WITHOUT ROWID")
            known.execute("BEGIN")
            known.executemany("INSERT OR IGNORE INTO live VALUES (?)", ((digest,) for digest in live))
            known.execute("COMMIT")

            def unused(digest: bytes) -> bool:
                return known.execute("SELECT 1 FROM live WHERE hash = ?", (digest,)).fetchone() is None

            swept = sum(store.sweep(unused, limit, now) for store in (self._small, self._big))
        self.flush()
        return swept

    def empty_trash(self, kept: float) -> int:
        """Deletes the chunks that have been in the trash for `kept` seconds, or all if the disk is full or the quota
        is reached; returns how many."""
        before = float("inf") if self.disk.short or self.quota.reached else self._clock.now - kept
        emptied = self._small.empty_trash(before) + self._big.empty_trash(before)
        self.quota.forget()
        return emptied

    def measure(self) -> None:
        """Looks at the sizes of all chunks, so that `usage` is right; call it while nothing else uses the store."""
        self._big.measure()

    def usage(self) -> DiskUsage:
        """The bytes that the chunks take, once they were measured."""
        small, counts = self._small.usage(), self._big.counts
        return DiskUsage(small.file + counts.kept, counts.trash, small.log)

    def shrink(self) -> None:
        """Returns the space of swept small chunks to the disk; call it while nothing else uses the store."""
        self._small.shrink()

    def close(self) -> None:
        """Makes everything durable and closes the files; call it when nothing uses the store any more."""
        self.flush()
        self._small.close()

    def _in_use(self) -> int:
        small, counts = self._small.usage(), self._big.counts
        return small.use + counts.kept + counts.trash

    def _make_room(self, digest: bytes, size: int) -> None:
        """Empties the trash for a new chunk. Raises OverQuota if there is still no room; a chunk that is there already
        takes none."""
        if self._small.get(digest) is not None or self._big.path(digest).exists():
            return
        refusal = self.quota.refusal()
        if self.empty_trash(0.0) and not self.quota.lacks(size):
            return
        raise refusal

    def _blocks(self, digest: bytes, length: int, skip: int) -> Iterator[bytes]:
        if length >= SMALL:
            yield from self._big.blocks(digest, length, skip)
            return
        data = self._small.get(digest)
        if data is None:
            raise missing(digest)
        yield data[skip:]


class _SteadyClock:
    """The machine's clock as it was when it was last read; from then on it only runs. One thread at a time."""

    def __init__(self) -> None:
        self._offset = _offset()

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return time.monotonic() + self._offset

    def follow(self) -> float:
        """Reads the machine's clock again. Returns the seconds by which it was set since it was last read, 0 for less
        than a minute: times that were taken before are to be moved by as much."""
        offset = _offset()
        step = offset - self._offset
        if abs(step) < _TOLERATED:
            return 0.0
        self._offset = offset
        return step


def _offset() -> float:
    return time.time() - time.monotonic()
