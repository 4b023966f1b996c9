"""Streams of changes: what they refuse, copy and keep. `tests/parity` compares them with a dictionary of paths."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localpachd.errors import PachError
from localpachd.pfs import commits, contents
from localpachd.pfs.files import file_modification
from localpachd.pfs.files.file_modification import FileAddition, FileChange, FileCopy
from localpachd.pfs.pfs_entities import Commit, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.storage.chunk_store import ChunkStore


def add(pfs: PfsService, path: str, data: bytes) -> FileAddition:
    return FileAddition(path, "default", pfs.chunks.store([data]))


def test_an_invalid_target_is_refused_before_the_stream_is_read(pfs: PfsService, a: Repo) -> None:
    file_modification.modify(pfs, Commit(a, branch="master"), [add(pfs, "/f", b"1")])
    with pfs.db.read() as conn:
        finished = commits.resolve(conn, Commit(a, branch="master")).commit

    def unread() -> Iterator[FileChange]:
        raise AssertionError("the stream was read")
        yield

    for target in (finished, Commit(Repo("default", "none"), branch="master"), Commit(a, "master^")):
        with pytest.raises(PachError):
            file_modification.modify(pfs, target, unread())


def test_content_appended_to_older_content_survives_a_crash(pfs: PfsService, a: Repo, tmp_path: Path) -> None:
    for data in (b"one", b"two"):
        file_modification.modify(pfs, Commit(a, branch="master"), [add(pfs, "/f", data)])
    with pfs.db.read() as conn:
        (file,) = contents.fileset(conn, commits.resolve(conn, Commit(a, branch="master"))).get("/f")
    # Another store on the same directory sees only durable chunks, not those that the first one has in memory.
    after_the_crash = ChunkStore(tmp_path / "chunks")
    assert b"".join(after_the_crash.read(file.content)) == b"onetwo"
    after_the_crash.close()


def test_the_root_is_not_a_file(pfs: PfsService, a: Repo) -> None:
    with pytest.raises(PachError, match="^path \\(/\\) invalid: the root directory is not a file$"):
        file_modification.modify(pfs, Commit(a, branch="master"), [add(pfs, "/", b"1")])


def test_a_copy_may_be_restricted_to_one_tag(pfs: PfsService, a: Repo) -> None:
    tagged = [FileAddition(f"/{tag}", tag, pfs.chunks.store([tag.encode()])) for tag in ("one", "two")]
    file_modification.modify(pfs, Commit(a, branch="master"), tagged)
    copy = FileCopy(Commit(a, branch="master"), "/", "two", "/copied", "default", append=False)
    file_modification.modify(pfs, Commit(a, branch="other"), [copy])
    with pfs.db.read() as conn:
        files = contents.fileset(conn, commits.resolve(conn, Commit(a, branch="other")))
        assert [(file.path, file.tag) for file in files.walk()] == [("/copied/two", "default")]
