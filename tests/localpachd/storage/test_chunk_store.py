"""The chunk store: content in, the same content out, across sizes, threads, restarts, kills and sweeps."""

import errno
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from localpachd import ids
from localpachd.errors import DataLoss, NoSpace, PachError
from localpachd.sqlite import transaction
from localpachd.storage import chunk_store, small_chunks
from localpachd.storage.chunk_store import SMALL, ChunkStore
from localpachd.storage.filesets import FileContent
from tests.example_counts import examples

SIZES = [0, 1, SMALL - 1, SMALL, ids.CHUNK_SIZE - 1, ids.CHUNK_SIZE, ids.CHUNK_SIZE + 1, 2 * ids.CHUNK_SIZE + SMALL]


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def cut(data: bytes, step: int) -> Iterator[bytes]:
    return (data[at : at + step] for at in range(0, len(data), step))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChunkStore]:
    """A store of the test's own, in its directory."""
    with closing(ChunkStore(tmp_path)) as made:
        yield made


@pytest.mark.parametrize("size", SIZES)
def test_a_file_stored_in_any_pieces_is_read_back(chunks: ChunkStore, size: int) -> None:
    data = noise(size)
    content = chunks.store([data])
    assert content.size == size
    assert len(content.chunks) == -(-size // ids.CHUNK_SIZE)
    assert b"".join(chunks.read(content)) == data
    assert chunks.store(cut(data, (1 << 20) + 7)) == content


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("more", [0, 1, SMALL, ids.CHUNK_SIZE])
def test_appending_is_the_same_as_storing_at_once(chunks: ChunkStore, size: int, more: int) -> None:
    data = noise(size + more, seed=1)
    content = chunks.append(chunks.store([data[:size]]), cut(data[size:], 1 << 20))
    assert content == chunks.store([data])


def test_reading_from_an_offset(chunks: ChunkStore) -> None:
    data = noise(ids.CHUNK_SIZE + 100, seed=2)
    content = chunks.store([data])
    for offset in (0, 1, 3 << 20, ids.CHUNK_SIZE - 1, ids.CHUNK_SIZE, ids.CHUNK_SIZE + 99, len(data), len(data) + 1):
        assert b"".join(chunks.read(content, offset)) == data[offset:]
    assert max(map(len, chunks.read(content))) <= 1 << 20


def test_a_small_file_has_the_hash_it_has_in_pachyderm(chunks: ChunkStore) -> None:
    content = chunks.store([b"foo\n"])
    assert content.chunks == (ids.chunk_hash(b"foo\n"),)
    assert content.hash == ids.chunk_hash(ids.chunk_hash(b"foo\n"))
    assert chunks.store([]) == chunks.store([b"", b""]) == FileContent(0, ())


@given(st.lists(st.binary(max_size=300), max_size=30))
def test_small_files_in_any_pieces(chunks: ChunkStore, pieces: list[bytes]) -> None:
    content = chunks.store(pieces)
    assert b"".join(chunks.read(content)) == b"".join(pieces)
    assert content == chunks.store([b"".join(pieces)])


def test_many_chunks_at_once(chunks: ChunkStore) -> None:
    data = {ids.chunk_hash(each): each for each in (b"%d" % number for number in range(1200))}
    for each in list(data.values())[:700]:
        chunks.put(each)
    chunks.flush()
    for each in (*list(data.values())[700:], noise(SMALL)):
        chunks.put(each)
    data[ids.chunk_hash(noise(SMALL))] = noise(SMALL)
    assert chunks.gather(list(data)) == data
    with pytest.raises(PachError, match="is not in the store"):
        chunks.gather([ids.chunk_hash(b"never put")])


def test_equal_chunks_are_kept_once(store: ChunkStore) -> None:
    for data in (b"small", noise(SMALL)) * 3:
        store.put(data)
    store.flush()
    store.put(b"small")
    assert sorted(store.hashes()) == sorted(map(ids.chunk_hash, (b"small", noise(SMALL))))


def test_many_threads_at_once(store: ChunkStore) -> None:
    datas = [noise(size, seed) for seed in range(150) for size in (10 + seed, SMALL + seed % 3)]

    def work(seed: int) -> list[bytes]:
        mine = random.Random(seed).sample(datas, 100)
        contents = [store.store([data]) for data in mine]
        store.flush()
        return [data for data, content in zip(mine, contents, strict=True) if b"".join(store.read(content)) != data]

    with ThreadPoolExecutor(8) as pool:
        assert [lost for lost in pool.map(work, range(16)) if lost] == []


def test_readers_do_not_wait_for_a_write(store: ChunkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    durable = store.put(b"durable")
    store.flush()
    held_up = store.put(b"held up")
    writing = threading.Event()

    def begin(conn: sqlite3.Connection) -> AbstractContextManager[None]:
        writing.set()
        return transaction(conn)

    monkeypatch.setattr(small_chunks, "transaction", begin)
    with closing(sqlite3.connect(tmp_path / "small.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # another process has the disk
        flush = threading.Thread(target=store.flush)
        flush.start()
        assert writing.wait(30)
        late = store.put(b"late")
        assert store.gather([durable, held_up, late]) == {durable: b"durable", held_up: b"held up", late: b"late"}
        assert [store.get(each) for each in (durable, held_up, late)] == [b"durable", b"held up", b"late"]
        assert flush.is_alive()
        other.execute("ROLLBACK")
    flush.join()
    assert sorted(store.hashes()) == sorted([durable, held_up, late])


def test_a_write_that_fails_loses_nothing(store: ChunkStore, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "small.sqlite", isolation_level=None)) as other:
        other.execute("CREATE TRIGGER full BEFORE INSERT ON small BEGIN SELECT RAISE(ABORT, 'disk full'); END")
        digest = store.put(b"kept")
        with pytest.raises(sqlite3.IntegrityError, match="disk full"):
            store.flush()
        assert store.get(digest) == b"kept"
        other.execute("DROP TRIGGER full")
    store.flush()
    assert list(store.hashes()) == [digest]


def test_big_chunks_are_durable_after_a_flush_and_not_waited_for_before(
    store: ChunkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def note(handle: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    digests = [store.put(noise(SMALL, seed)) for seed in range(3)]
    store.put(noise(SMALL, 0))
    assert synced == []
    store.flush()
    files = [tmp_path / digest.hex()[:2] / digest.hex()[2:] for digest in digests]
    assert sorted(synced) == sorted({str(each) for file in files for each in (file, file.parent, tmp_path)})
    synced.clear()
    store.flush()
    assert synced == []


def test_a_big_chunk_that_was_not_written_is_not_relied_on(store: ChunkStore, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, lost = (store.put(noise(SMALL, seed)) for seed in (1, 2))
    fsync = os.fsync

    def fail(handle: int) -> None:
        if lost.hex()[2:] in str(Path(f"/proc/self/fd/{handle}").readlink()):
            raise OSError(errno.EIO, "the disk is broken")
        fsync(handle)

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="the disk is broken"):
            store.flush()
    with pytest.raises(FileNotFoundError):  # also for callers that found it there when they put it
        store.flush()
    assert store.put(noise(SMALL, 2)) == lost
    store.flush()
    assert {store.get(kept), store.get(lost)} == {noise(SMALL, 1), noise(SMALL, 2)}


def test_flushed_chunks_survive_a_kill(tmp_path: Path) -> None:
    program = (
        "import os, sys, pathlib; from localpachd.storage.chunk_store import ChunkStore\n"
        "store = ChunkStore(pathlib.Path(sys.argv[1]))\n"
        "store.put(b'kept'); store.put(bytes(100_000)); store.flush(); store.put(b'lost'); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False).returncode == 9
    (tmp_path / "tmp" / "half-written").write_bytes(b"rest of a killed put")
    store = ChunkStore(tmp_path)
    assert store.get(ids.chunk_hash(b"kept")) == b"kept"
    assert store.get(ids.chunk_hash(bytes(100_000))) == bytes(100_000)
    with pytest.raises(PachError, match="not in the store"):
        store.get(ids.chunk_hash(b"lost"))
    assert list((tmp_path / "tmp").iterdir()) == []
    store.close()


@pytest.mark.parametrize("size", [10, SMALL, ids.CHUNK_SIZE])
def test_a_missing_chunk_is_an_error(chunks: ChunkStore, size: int) -> None:
    gone = FileContent(size, (ids.chunk_hash(noise(size, seed=99)),))
    with pytest.raises(PachError, match="not in the store"):
        list(chunks.read(gone))


def test_a_sweep_keeps_live_and_new_chunks(store: ChunkStore) -> None:
    kept, dropped = noise(SMALL, 1), noise(SMALL, 2)
    for data in (b"kept", b"dropped", kept, dropped):
        store.put(data)
    live = [ids.chunk_hash(b"kept"), ids.chunk_hash(kept)]
    assert store.sweep(live, before=store.advance()) == 0
    assert store.sweep(live) == 2
    assert sorted(store.hashes()) == sorted(live)
    store.put(dropped)
    assert store.get(ids.chunk_hash(dropped)) == dropped


@pytest.mark.parametrize("size", [10, SMALL])
def test_putting_an_old_chunk_again_saves_it_from_a_sweep(store: ChunkStore, size: int) -> None:
    old, again = noise(size, 1), noise(size, 2)
    for data in (old, again):
        store.put(data)
    store.flush()
    store.advance()
    store.put(again)
    assert store.sweep([], before=store.advance()) == 1
    assert list(store.hashes()) == [ids.chunk_hash(again)]


@pytest.mark.parametrize("size", [10, SMALL, ids.CHUNK_SIZE])
def test_trash_comes_back_when_it_is_put_or_referred_to_again(store: ChunkStore, size: int) -> None:
    put, referred, gone = (store.put(noise(size, seed)) for seed in range(3))
    assert store.sweep([]) == 3
    assert list(store.hashes()) == []
    assert store.put(noise(size, 0)) == put
    assert store.sweep([put, referred]) == 0
    assert store.empty_trash(kept=60) == 0
    assert store.empty_trash(kept=-60) == 1
    assert store.empty_trash(kept=-60) == 0
    assert sorted(store.hashes()) == sorted([put, referred])
    assert [store.get(put), store.get(referred)] == [noise(size, 0), noise(size, 1)]
    assert b"".join(store.read(FileContent(size, (referred,)))) == noise(size, 1)
    with pytest.raises(DataLoss, match="is not in the store"):
        store.get(gone)


class SetClock:
    """A clock of the store that is set, and on which time passes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wrong = self.passed = 0.0
        monkeypatch.setattr(chunk_store, "time", self)

    def time(self) -> float:
        return time.time() + self.passed + self.wrong

    def monotonic(self) -> float:
        return time.monotonic() + self.passed


HOUR, DAY = 3600.0, 86400.0


@pytest.mark.parametrize("size", [10, SMALL])
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.floats(-4e8, 4e8), max_size=4), restarts=st.booleans())
def test_the_trash_is_kept_for_a_day_however_the_clock_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, steps: list[float], restarts: bool
) -> None:
    with monkeypatch.context() as patch, tempfile.TemporaryDirectory(dir=tmp_path) as place:
        clock = SetClock(patch)
        store = ChunkStore(Path(place))
        digest = store.put(noise(size))
        assert store.sweep([]) == 1
        for step in steps:
            clock.wrong += step
            clock.passed += HOUR
            assert store.sweep([]) == 0
            assert store.empty_trash(kept=DAY) == 0
        if restarts:  # nothing tells how the clock was set meanwhile: it may keep the trash for a day more
            store.close()
            clock.wrong -= 1e8
            store = ChunkStore(Path(place))
            assert store.sweep([]) == 0
            assert store.empty_trash(kept=DAY) == 0
        clock.passed += DAY + 1
        assert store.sweep([]) == 0
        assert store.empty_trash(kept=DAY) == 1
        with pytest.raises(DataLoss):
            store.get(digest)
        store.close()


def test_the_trash_is_emptied_at_once_on_a_full_disk(store: ChunkStore) -> None:
    for size in (10, SMALL):
        store.put(noise(size))
    assert store.sweep([]) == 2
    with pytest.raises(NoSpace), store.disk.writing():
        raise OSError(errno.ENOSPC, "full")
    assert store.empty_trash(kept=86400) == 2


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def damage(root: Path, digest: bytes, change: Callable[[bytes], bytes]) -> None:
    """Changes the stored bytes of a chunk, behind the store's back."""
    path = root / digest.hex()[:2] / digest.hex()[2:]
    if path.exists():
        path.write_bytes(change(path.read_bytes()))
        return
    with closing(sqlite3.connect(root / "small.sqlite", isolation_level=None)) as conn:
        (data,) = conn.execute("SELECT data FROM small WHERE hash = ?", (digest,)).fetchone()
        conn.execute("UPDATE small SET data = ? WHERE hash = ?", (change(data), digest))


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "first bit": lambda data: flip(data, 0),
    "last bit": lambda data: flip(data, len(data) - 1),
    "truncated": lambda data: data[: len(data) // 2],
    "last byte missing": lambda data: data[:-1],
    "longer": lambda data: data + b"x",
    "empty": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
}


@pytest.mark.parametrize("size", [10, SMALL - 1, SMALL, (1 << 20) + 5, ids.CHUNK_SIZE])
@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_never_served_and_the_same_bytes_repair_it(
    store: ChunkStore, tmp_path: Path, size: int, kind: str
) -> None:
    data = noise(size, seed=7)
    content = store.store([data])
    store.flush()
    (digest,) = content.chunks
    damage(tmp_path, digest, DAMAGES[kind])
    with pytest.raises(DataLoss, match=f"^/cat.jpg cannot be read: chunk {digest.hex()} is damaged"):
        b"".join(store.read(content, name="/cat.jpg"))
    for read in (lambda: store.get(digest), lambda: store.gather([digest]), lambda: store.check(read=True)):
        with pytest.raises(DataLoss, match=digest.hex()):
            read()
    assert store.store([data]) == content
    store.flush()
    assert b"".join(store.read(content)) == store.get(digest) == data
    assert store.check(read=True) == 1


def test_a_read_sends_nothing_that_is_damaged(store: ChunkStore, tmp_path: Path) -> None:
    data = noise(ids.CHUNK_SIZE, seed=8)
    content = store.store([data])
    store.flush()
    damage(tmp_path, content.chunks[0], lambda stored: flip(stored, 5 << 20))
    got = b""
    with pytest.raises(DataLoss):
        for piece in store.read(content):
            got += piece
    assert got == data[: 5 << 20]
    assert b"".join(store.read(content, 6 << 20)) == data[6 << 20 :]  # the rest is not damaged


def test_damage_is_found(tmp_path: Path) -> None:
    chunks = ChunkStore(tmp_path / "checked")
    small, big = chunks.put(b"small"), chunks.put(b"b" * SMALL)
    assert chunks.check(read=True) == 2
    assert chunks.check(begin=max(small, big)) == chunks.check(end=min(small, big)) == 1
    (path,) = (tmp_path / "checked").glob("??/*")
    path.write_bytes(b"c" * SMALL)
    assert chunks.check() == 2
    damage(tmp_path / "checked", small, DAMAGES["first bit"])
    with pytest.raises(DataLoss, match="^2 of 2 chunks are damaged") as error:
        chunks.check(read=True)
    assert small.hex() in str(error.value) and big.hex() in str(error.value)
    chunks.close()


@pytest.mark.parametrize("size", [10, SMALL])
def test_a_chunk_is_not_older_than_the_work_that_puts_it(tmp_path: Path, size: int) -> None:
    with closing(ChunkStore(tmp_path)) as store:
        for seed in range(20):
            with store.uses.one():
                first = store.advance()
                digest = store.put(noise(size, seed))
                store.sweep((), first)
                store.sweep((), store.advance())
                assert digest in set(store.hashes())
