"""Big chunks: a file each, with checksums behind its bytes. Knows no small chunks, files of users or references.

Hashing takes longer than reading and sending, so every 256 KiB of a chunk has a checksum behind the chunk's end: XXH3,
8 bytes each, and 8 bytes that mark them.
"""

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from xxhash import xxh3_64, xxh3_64_digest

from localpachd import durable_files
from localpachd.errors import DataLoss
from localpachd.ids import BytesLike, chunk_hash
from localpachd.storage.quota import ByteCounts

_BLOCK = 256 << 10  # bytes read, and checked, at once
_MARK = b"lp-xxh3\n"
_SUM = 8  # bytes of a checksum
_NAME = re.compile(r"[0-9a-f]{64}")


class BigChunks:
    """The files below one directory. Every method may be called from any thread; one process at a time. `generation`
    gives the one in which a chunk is put (see `ActiveUses`)."""

    def __init__(self, root: Path, generation: Callable[[], int]) -> None:
        self._root = root
        self._generation = generation
        self._trash = root / "trash"
        for directory in (root / "tmp", self._trash):
            directory.mkdir(exist_ok=True)
        for left in (root / "tmp").iterdir():  # of a process that was killed while writing
            with suppress(OSError):  # not ours: chunks never have a name that is in use
                left.unlink()
        self._lock = threading.Lock()
        self._put: dict[bytes, int] = {}  # the generations of chunks that are too young for a sweep
        self._unsynced: dict[Path, None] = {}  # chunks and then their directories, to be made durable
        self._sync_lock = threading.Lock()  # held by the thread that does so
        self.counts = ByteCounts()

    def put(self, digest: bytes, parts: Sequence[BytesLike]) -> None:
        """Stores a chunk; it is durable after the next `flush`. Replaces one that is damaged."""
        path = self.path(digest)
        sums = _sums(parts)
        with self._lock:
            self._put[digest] = self._generation()  # from now on no sweep touches the file
        if _is_whole(path, sum(map(len, parts)), sums):
            return
        temporary = self._root / "tmp" / uuid4().hex
        try:
            with open(temporary, "xb", opener=_private) as file:
                file.writelines((*parts, sums))
                file.flush()
                durable_files.begin(file.fileno())
            path.parent.mkdir(exist_ok=True)
            with self._lock:  # so that a caller that finds it here also finds it in _unsynced
                replaced = _size(path)  # damaged ones alone are replaced
                size = _size(temporary)
                temporary.replace(path)
                self.counts.add(kept=size - replaced)
                self._unsynced.update(dict.fromkeys((path, path.parent, self._root)))
        finally:
            temporary.unlink(missing_ok=True)
        self._delete_trashed(digest)

    def flush(self) -> None:
        """Returns when every chunk put so far would survive a power failure.

        After a chunk could not be written, raises OSError for every caller until that chunk is put again.
        """
        with self._sync_lock:  # a caller with nothing left to do waits for those still syncing
            with self._lock:
                unsynced, self._unsynced = self._unsynced, {}
            for path in unsynced:
                try:
                    durable_files.sync(path)
                except BaseException:
                    with self._lock:
                        if path.is_file():
                            self.counts.add(kept=-_size(path))
                            path.unlink()  # its bytes cannot be trusted, even if a second try succeeds
                        self._unsynced = {**unsynced, **self._unsynced}
                    raise

    def get(self, digest: bytes) -> bytes:
        """The bytes of one chunk. DataLoss if it is damaged, or not in the store."""
        try:
            return _content(self.path(digest), digest)
        except FileNotFoundError:
            raise missing(digest) from None

    def blocks(self, digest: bytes, length: int, skip: int = 0) -> Iterator[bytes]:
        """The bytes of a chunk of `length` bytes from `skip`, in pieces of at most 256 KiB, each checked before it is
        yielded. DataLoss if it is damaged, or not in the store."""
        count = -(-length // _BLOCK)
        try:
            file = self.path(digest).open("rb", buffering=0)
        except FileNotFoundError:
            raise missing(digest) from None
        with file:
            size = os.fstat(file.fileno()).st_size
            sums = os.pread(file.fileno(), _sums_size(count), length)
            if size != length + len(sums) or not sums.endswith(_MARK):
                raise damaged(digest)
            first, skip = divmod(skip, _BLOCK)
            file.seek(first * _BLOCK)
            for number in range(first, count):
                block = file.read(min(_BLOCK, length - number * _BLOCK))
                if xxh3_64_digest(block) != sums[_SUM * number : _SUM * (number + 1)]:
                    raise damaged(digest)
                yield block[skip:] if skip else block
                skip = 0

    def hashes(self) -> Iterator[bytes]:
        """Every chunk that is not in the trash, in no particular order."""
        for path in self._root.glob("??/*"):
            # Other files come from the disk itself: network file systems keep deleted ones as `.nfs…`.
            if _NAME.fullmatch(name := path.parent.name + path.name):
                yield bytes.fromhex(name)

    def sweep(self, unused: Callable[[bytes], bool], limit: float, now: float) -> int:
        """Moves into the trash the unused chunks from generations before `limit`, and the used ones back out of it;
        returns how many were moved there, at the time `now`."""
        for digest in self._in_trash():
            if not unused(digest):
                self._restore(digest)
        swept = sum(self._throw_away(digest, limit, now) for digest in self.hashes() if unused(digest))
        with self._lock:
            self._put = {digest: put for digest, put in self._put.items() if put >= limit}
        return swept

    def correct_trash(self, step: float, now: float) -> None:
        """Moves the times in the trash by the seconds by which the clock was set; none stays later than `now`."""
        for path in map(self._trashed, self._in_trash()):
            with suppress(FileNotFoundError):  # it was put again
                since = path.stat().st_mtime
                if step or since > now:
                    corrected = min(since + step, now)
                    os.utime(path, (corrected, corrected))

    def empty_trash(self, before: float) -> int:
        """Deletes what has been in the trash since before a time (seconds since the epoch); returns how many."""
        deleted = 0
        for digest in self._in_trash():
            with suppress(FileNotFoundError):  # it was put again
                if self._trashed(digest).stat().st_mtime < before:
                    deleted += self._delete_trashed(digest)
        return deleted

    def measure(self) -> None:
        """Looks at the sizes of all files, so that `counts` is right; call it while nothing else uses the store."""
        kept = sum(_size(self.path(digest)) for digest in self.hashes())
        self.counts.set(kept, sum(_size(self._trashed(digest)) for digest in self._in_trash()))

    def path(self, digest: bytes) -> Path:
        """The file of a chunk."""
        name = digest.hex()
        return self._root / name[:2] / name[2:]

    def _trashed(self, digest: bytes) -> Path:
        return self._trash / digest.hex()

    def _in_trash(self) -> Iterable[bytes]:
        return [bytes.fromhex(path.name) for path in self._trash.iterdir() if _NAME.fullmatch(path.name)]

    def _throw_away(self, digest: bytes, limit: float, now: float) -> bool:
        with self._lock:  # so that a put does not find a chunk about to be moved
            old = self._put.get(digest, 0) < limit
            if old:
                target = self._trashed(digest)
                self.path(digest).replace(target)
                os.utime(target, (now, now))
                size = _size(target)
                self.counts.add(-size, size)
            return old

    def _restore(self, digest: bytes) -> None:
        path = self.path(digest)
        with self._lock:
            if not path.exists():
                path.parent.mkdir(exist_ok=True)
                self._trashed(digest).replace(path)
                size = _size(path)
                self.counts.add(size, -size)
                self._unsynced.update(dict.fromkeys((path, path.parent, self._root)))

    def _delete_trashed(self, digest: bytes) -> int:
        """Deletes a chunk from the trash; returns 1, or 0 if it is not there."""
        path = self._trashed(digest)
        size = _size(path)
        try:
            path.unlink()
        except FileNotFoundError:
            return 0
        self.counts.add(trash=-size)
        return 1


def _size(path: Path) -> int:
    """The bytes of a file, 0 for none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def verified(path: Path, digest: bytes) -> bytes:
    """The bytes of the chunk in a file, compared with their hash. DataLoss if it is damaged, FileNotFoundError."""
    data = _content(path, digest)
    if chunk_hash(data) != digest:
        raise damaged(digest)
    return data


def _content(path: Path, digest: bytes) -> bytes:
    """The bytes of the chunk in a file, compared with their checksums."""
    data = path.read_bytes()
    blocks = -(-len(data) // _BLOCK)
    for count in (blocks, blocks - 1):  # the checksums may begin a block of their own
        end = len(data) - _sums_size(count)
        if 0 < end <= count * _BLOCK and data.endswith(_MARK) and _sums((memoryview(data)[:end],)) == data[end:]:
            return data[:end]
    raise damaged(digest)


def damaged(digest: bytes) -> DataLoss:
    """The error for a chunk whose bytes are not those of its hash."""
    return DataLoss(f"chunk {digest.hex()} is damaged: its bytes are not those that were stored")


def missing(digest: bytes) -> DataLoss:
    """The error for a chunk that is in no store."""
    return DataLoss(f"chunk {digest.hex()} is not in the store; was its file deleted by hand?")


def _sums_size(blocks: int) -> int:
    return _SUM * blocks + len(_MARK)


def _sums(parts: Iterable[BytesLike]) -> bytes:
    """What stands behind the bytes of a chunk in its file."""
    sums = bytearray()
    block, room = xxh3_64(), _BLOCK
    for part in parts:
        rest = memoryview(part)
        while rest:
            piece, rest = rest[:room], rest[room:]
            block.update(piece)
            room -= len(piece)
            if not room:
                sums += block.digest()
                block, room = xxh3_64(), _BLOCK
    if room < _BLOCK:
        sums += block.digest()
    return bytes(sums) + _MARK


def _is_whole(path: Path, length: int, sums: bytes) -> bool:
    """Whether a file holds the chunk with this length and these checksums."""
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        return False
    with file:
        left = length
        found = bytearray()
        while left and (block := file.read(min(_BLOCK, left))):
            found += xxh3_64_digest(block)
            left -= len(block)
        return not left and bytes(found) + _MARK == sums == file.read()


def _private(path: str, flags: int) -> int:
    """Opens a new file that only its owner may read, whatever the umask."""
    return os.open(path, flags, 0o600)
