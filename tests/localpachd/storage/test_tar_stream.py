"""The tar stream, read back by the standard library."""

import io
import tarfile

import pytest

from localpachd import ids
from localpachd.database import Database
from localpachd.errors import PachError
from localpachd.storage import tar_stream, trees
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import FileContent, FileSet, write_layer

FILES = {
    "/a.txt": b"hello\n",
    "/d/empty": b"",
    "/d/exact": bytes(range(256)) * 4,
    "/d/big": b"0123456789" * 200_001,
    "/" + "long/" * 60 + "x" * 200: b"far down",
}


def test_a_tree_is_read_back_from_its_tar(db: Database, chunks: ChunkStore) -> None:
    entries = [(path, "default", chunks.store([data])) for path, data in FILES.items()]
    layer = db.write(lambda conn: write_layer(conn, entries))
    with db.read() as conn:
        nodes = list(trees.archive(FileSet(conn, [layer]), "/"))
    pieces = list(tar_stream.stream(nodes, chunks))
    assert max(map(len, pieces)) <= 1 << 20
    raw = b"".join(pieces)
    assert raw.endswith(bytes(1024))
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        members = archive.getmembers()
        # tarfile strips the slash from the names of directories.
        assert [member.name + "/" * member.isdir() for member in members if member.name] == [
            node.path for node in nodes if node.path != "/"
        ]
        assert {(member.mode, member.mtime, member.uid, member.uname) for member in members} == {(0, 0, 0, "")}
        read = {member.name: archive.extractfile(member) for member in members if member.isfile()}
        assert {name: file.read() for name, file in read.items() if file} == FILES
    assert raw.startswith(b"/\0")


def test_an_empty_tar_is_only_its_end(chunks: ChunkStore) -> None:
    assert list(tar_stream.stream([], chunks)) == [bytes(1024)]


def test_a_missing_chunk_stops_the_stream(db: Database, chunks: ChunkStore) -> None:
    gone = FileContent(3, (ids.chunk_hash(b"never stored"),))
    layer = db.write(lambda conn: write_layer(conn, [("/a", "default", gone)]))
    with db.read() as conn, pytest.raises(PachError, match="not in the store"):
        list(tar_stream.stream(trees.archive(FileSet(conn, [layer]), "/*"), chunks))
