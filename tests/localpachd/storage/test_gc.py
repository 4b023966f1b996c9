"""Garbage collection: what something refers to stays, the rest goes."""

import time
from pathlib import Path

from localpachd import ids
from localpachd.db import Database
from localpachd.storage.chunks import SMALL, Chunks
from localpachd.storage.filesets import FileSet, write_layer
from localpachd.storage.gc import Swept, sweep


def fill(db: Database, chunks: Chunks, *names: str) -> dict[str, int]:
    """A layer for each name with a small, a big and a shared file."""
    stored = {}
    for name in names:
        entries = [
            (f"/{name}/small", "default", chunks.store([name.encode()])),
            (f"/{name}/big", "default", chunks.store([name.encode() * SMALL])),
            ("/shared", "default", chunks.store([b"shared"])),
            ("/removed", "default", None),
        ]
        stored[name] = db.write(lambda conn, entries=entries: write_layer(conn, entries))
    chunks.flush()
    return stored


def refer(db: Database, layer: int) -> None:
    db.write(lambda conn: conn.execute("INSERT INTO commit_layers VALUES (1, 'total', ?, ?)", (layer, layer)))


def test_only_what_nothing_refers_to_goes(tmp_path: Path) -> None:
    db, chunks = Database(tmp_path / "db.sqlite"), Chunks(tmp_path / "chunks")
    layers = fill(db, chunks, "committed", "read", "gone")
    refer(db, layers["committed"])
    assert sweep(db, chunks, keep=[layers["read"]], before=time.time()) == Swept(layers=1, chunks=0)
    assert sweep(db, chunks, keep=[layers["read"]]) == Swept(layers=0, chunks=2)
    with db.read() as conn:
        kept = list(FileSet(conn, [layers["committed"], layers["read"]]).walk())
        assert list(FileSet(conn, [layers["gone"]]).walk()) == []
    assert len(kept) == 5
    assert all(len(b"".join(chunks.read(file.content))) == file.content.size for file in kept)
    assert sweep(db, chunks) == Swept(layers=1, chunks=2)
    assert len(list(chunks.hashes())) == 3
    db.write(lambda conn: conn.execute("DELETE FROM commit_layers"))
    assert sweep(db, chunks) == Swept(layers=1, chunks=3)
    assert list(chunks.hashes()) == []
    assert sweep(db, chunks) == Swept(layers=0, chunks=0)
    db.close()
    chunks.close()


def test_a_file_of_several_chunks_keeps_them_all(tmp_path: Path) -> None:
    db, chunks = Database(tmp_path / "db.sqlite"), Chunks(tmp_path / "chunks")
    content = chunks.store([bytes(ids.CHUNK_SIZE), b"the rest"])
    refer(db, db.write(lambda conn: write_layer(conn, [("/f", "default", content)])))
    assert sweep(db, chunks) == Swept(layers=0, chunks=0)
    assert sum(map(len, chunks.read(content))) == content.size
    db.close()
    chunks.close()
