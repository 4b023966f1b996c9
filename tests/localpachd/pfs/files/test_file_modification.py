"""Streams of changes against a model: a dictionary of paths."""

import posixpath
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from localpachd.database import Database
from localpachd.errors import PachError
from localpachd.pfs import commits, contents, repos
from localpachd.pfs.files import file_modification
from localpachd.pfs.files.file_modification import FileAddition, FileChange, FileCopy, FileRemoval
from localpachd.pfs.pfs_entities import Commit, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.storage.chunk_store import ChunkStore
from tests.example_counts import examples


def add(pfs: PfsService, path: str, data: bytes) -> FileAddition:
    return FileAddition(path, "default", pfs.chunks.store([data]))


def tree(pfs: PfsService, repo: Repo) -> dict[str, bytes]:
    with pfs.db.read() as conn:
        files = contents.fileset(conn, commits.resolve(conn, Commit(repo, branch="master")))
        return {file.path: b"".join(pfs.chunks.read(file.content)) for file in files.walk()}


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


_names = st.sampled_from(["/a", "/a-b", "/b", "/d/a", "/d/b", "/d/e/f", "/d-x/y"])
_changes = st.one_of(
    st.tuples(st.just("add"), _names, st.binary(max_size=6)),
    st.tuples(st.just("put"), _names, st.binary(max_size=6)),
    st.tuples(st.just("rm"), _names, st.just(b"")),
    st.tuples(st.just("rmdir"), st.sampled_from(["/", "/d/", "/d/e/", "/none/"]), st.just(b"")),
    st.tuples(st.just("cp"), _names, st.sampled_from([b"/a", b"/d/", b"/d/a"])),
)


def model(files: dict[str, bytes], before: dict[str, bytes], kind: str, path: str, data: bytes) -> None:
    if kind == "add":
        files[path] = files.get(path, b"") + data
    elif kind == "put":
        files[path] = data
    elif kind == "rm":
        files.pop(path, None)
    elif kind == "rmdir":
        for each in [each for each in files if each.startswith(path)]:
            del files[each]
    else:
        source = data.decode().rstrip("/")
        for each in [each for each in before if each == source or each.startswith(source + "/")]:
            files[posixpath.normpath(path + each[len(source) :])] = before[each]


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(streams=st.lists(st.lists(_changes, max_size=5), max_size=5))
def test_streams_have_the_effect_of_the_model(
    tmp_path_factory: pytest.TempPathFactory, streams: list[list[tuple[str, str, bytes]]]
) -> None:
    root: Path = tmp_path_factory.mktemp("pfs")
    db, chunks = Database(root / "db"), ChunkStore(root / "chunks")
    pfs, repo = PfsService.open(db, chunks), Repo("default", "a")
    pfs.transact(lambda txn: repos.create(txn, repo))
    file_modification.modify(pfs, Commit(repo, branch="master"), [])
    files: dict[str, bytes] = {}
    for stream in streams:
        before, expected, changes = dict(files), dict(files), list[FileChange]()
        for kind, path, data in stream:
            model(expected, before, kind, path, data)
            changes += as_changes(pfs, repo, kind, path, data)
        if has_collision(expected):
            continue
        file_modification.modify(pfs, Commit(repo, branch="master"), changes)
        files = expected
        assert tree(pfs, repo) == files
        with pfs.db.read() as conn:
            info = commits.resolve(conn, Commit(repo, branch="master"))
            assert info.size == sum(map(len, files.values()))
    chunks.close()
    db.close()


def as_changes(pfs: PfsService, repo: Repo, kind: str, path: str, data: bytes) -> list[FileChange]:
    if kind == "add":
        return [add(pfs, path, data)]
    if kind == "put":
        return [FileRemoval(path, "default"), add(pfs, path, data)]
    if kind == "cp":
        # By id, so that the stream reads the commit as it was before the stream.
        with pfs.db.read() as conn:
            head = commits.resolve(conn, Commit(repo, branch="master")).commit
        return [FileCopy(head, data.decode(), "", path, "default", append=False)]
    return [FileRemoval(path, "default")]


def has_collision(files: dict[str, bytes]) -> bool:
    return any(other.startswith(path + "/") for path in files for other in files)
