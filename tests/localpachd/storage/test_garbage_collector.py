"""Garbage collection: layers and chunks with references stay, the others are deleted."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from localpachd import ids
from localpachd.database import Database
from localpachd.storage.chunk_store import SMALL, ChunkStore
from localpachd.storage.filesets import FileSet, write_layer
from localpachd.storage.garbage_collector import GarbageCollector, SweepCounts, sweep
from tests.localpachd.storage.test_chunk_store import SetClock


def fill(db: Database, chunks: ChunkStore, *names: str) -> dict[str, int]:
    """A layer for each name with a small, a big and a shared file."""
    stored = {}
    for name in names:
        entries = [
            (f"/{name}/small", "default", chunks.store([name.encode()])),
            (f"/{name}/big", "default", chunks.store([name.encode() * SMALL])),
            ("/shared", "default", chunks.store([b"shared"])),
            ("/removed", "default", None),
        ]
        stored[name] = db.write(partial(write_layer, entries=entries))
    chunks.flush()
    return stored


def refer(db: Database, layer: int) -> None:
    db.write(lambda conn: conn.execute("INSERT INTO commit_layers VALUES (1, 'total', ?, ?)", (layer, layer)))


def test_only_garbage_is_deleted(tmp_path: Path) -> None:
    db, chunks = Database(tmp_path / "db.sqlite"), ChunkStore(tmp_path / "chunks")
    layers = fill(db, chunks, "committed", "gone")
    refer(db, layers["committed"])
    assert sweep(db, chunks) == SweepCounts(layers=1, chunks=2)
    with db.read() as conn:
        kept = list(FileSet(conn, [layers["committed"]]).walk())
        assert list(FileSet(conn, [layers["gone"]]).walk()) == []
    assert len(kept) == 3
    assert all(len(b"".join(chunks.read(file.content))) == file.content.size for file in kept)
    assert len(list(chunks.hashes())) == 3
    db.write(lambda conn: conn.execute("DELETE FROM commit_layers"))
    assert sweep(db, chunks) == SweepCounts(layers=1, chunks=3)
    assert list(chunks.hashes()) == []
    assert sweep(db, chunks) == SweepCounts(layers=0, chunks=0)
    db.close()
    chunks.close()


def test_a_layer_is_deleted_once_nothing_can_be_reading_it(tmp_path: Path) -> None:
    db, chunks = Database(tmp_path / "db.sqlite"), ChunkStore(tmp_path / "chunks")
    sweeper = GarbageCollector(db, chunks)
    fill(db, chunks, "gone")
    assert sweeper.sweep().layers == 0  # found unused for the first time
    with chunks.uses.one():
        assert sweeper.sweep().layers == 1  # work that began since cannot have seen it
    fill(db, chunks, "read")
    with ExitStack() as reading:
        reading.enter_context(chunks.uses.one())
        assert [sweeper.sweep().layers for _ in range(3)] == [0, 0, 0]
    assert sweeper.sweep().layers == 1
    layer = fill(db, chunks, "found again")["found again"]
    assert sweeper.sweep().layers == 0
    refer(db, layer)
    assert [sweeper.sweep().layers for _ in range(2)] == [0, 0]
    db.close()
    chunks.close()


def test_a_chunk_is_deleted_once_nothing_is_about_to_refer_to_it(tmp_path: Path) -> None:
    db, chunks = Database(tmp_path / "db.sqlite"), ChunkStore(tmp_path / "chunks")
    sweeper = GarbageCollector(db, chunks)
    chunks.store([b"left over"])
    chunks.store([b"left over" * SMALL])
    assert sweeper.sweep().chunks == 0
    with chunks.uses.one():
        chunks.store([b"being put"])
        chunks.store([b"left over"])  # exists already, and is needed again
        chunks.flush()
        assert [sweeper.sweep().chunks for _ in range(5)] == [1, 0, 0, 0, 0]
        assert len(list(chunks.hashes())) == 2
    assert sweeper.sweep().chunks == 2
    db.close()
    chunks.close()


@pytest.mark.parametrize("step", [-7200, -1e9, 7200, 1e9])
def test_a_clock_that_is_set_during_an_upload_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    db, chunks = Database(tmp_path / "db.sqlite"), ChunkStore(tmp_path / "chunks")
    sweeper = GarbageCollector(db, chunks)
    entries = []
    with chunks.uses.one():
        for number, data in enumerate((b"before", b"before" * SMALL, b"after", b"after" * SMALL)):
            if number == 2:
                SetClock(monkeypatch).wrong = step
            entries.append((f"/{number}", "default", chunks.store([data])))
            chunks.flush()
        for _ in range(3):
            sweeper.sweep()
        refer(db, db.write(lambda conn: write_layer(conn, entries)))
    for _ in range(3):
        sweeper.sweep()
    assert [sum(map(len, chunks.read(content))) for _, _, content in entries] == [6, 6 * SMALL, 5, 5 * SMALL]
    db.close()
    chunks.close()


def test_a_file_of_several_chunks_keeps_them_all(tmp_path: Path) -> None:
    db, chunks = Database(tmp_path / "db.sqlite"), ChunkStore(tmp_path / "chunks")
    content = chunks.store([bytes(ids.CHUNK_SIZE), b"the rest"])
    refer(db, db.write(lambda conn: write_layer(conn, [("/f", "default", content)])))
    assert sweep(db, chunks) == SweepCounts(layers=0, chunks=0)
    assert sum(map(len, chunks.read(content))) == content.size
    db.close()
    chunks.close()


def test_files_shrink_with_their_content(tmp_path: Path) -> None:
    db, chunks = Database(tmp_path / "db.sqlite"), ChunkStore(tmp_path / "chunks")
    kept, gone = (
        [(f"/{name}/{number}", "default", chunks.store([f"{name} {number}".encode() * 900])) for number in range(600)]
        for name in ("kept", "gone")
    )
    chunks.flush()
    refer(db, db.write(lambda conn: write_layer(conn, kept[:100])))
    for _ in range(4):
        db.write(lambda conn: write_layer(conn, [*kept, *gone]))

    def size() -> tuple[int, ...]:
        return tuple(
            sum(each.stat().st_size for each in where.glob(f"{name}*"))
            for where, name in ((tmp_path, "db.sqlite"), (tmp_path / "chunks", "small.sqlite"))
        )

    before = size()
    sweep(db, chunks)
    assert size()[1] >= before[1]  # the chunks are in the trash
    chunks.empty_trash(0.0)
    sweep(db, chunks)
    after = size()
    assert all(small < 0.5 * large for small, large in zip(after, before, strict=True))
    sweep(db, chunks)
    assert size() == after
    assert all(b"".join(chunks.read(content)) for _, _, content in kept[:100])
    chunks.close()
    db.close()
