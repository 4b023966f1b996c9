"""File sets that clients hold: what they come to against a model of plain dictionaries, and how long they live."""

import time
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from localpachd.database import Database
from localpachd.errors import NotFound, PachError
from localpachd.pfs import commits, contents, repos
from localpachd.pfs.files import file_modification, temporary_filesets
from localpachd.pfs.files.file_modification import FileAddition, FileChange, FileRemoval
from localpachd.pfs.files.temporary_filesets import SECOND, FileSetLayers
from localpachd.pfs.pfs_entities import Branch, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.storage import garbage_collector
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import FileSet
from tests.example_counts import examples

Key = tuple[str, str]
Stream = list[tuple[str, Key, bytes]]
Tree = dict[Key, bytes]
Effect = dict[Key, tuple[bool, bytes | None]]
"""The effect of a stream on each path and tag: whether it removes the file below, and the bytes it appends."""

_keys = st.tuples(st.sampled_from(["/a", "/a-b", "/d/a", "/d/b", "/d/e/f"]), st.sampled_from(["default", "t"]))
_steps = st.one_of(
    st.tuples(st.just("add"), _keys, st.binary(max_size=3)),
    st.tuples(st.just("put"), _keys, st.binary(max_size=3)),
    st.tuples(st.just("rm"), _keys, st.just(b"")),
    st.tuples(st.just("rmdir"), _keys.map(lambda key: ("/d/", key[1])), st.just(b"")),
)
_streams = st.lists(_steps, max_size=7)


def effect(stream: Stream) -> Effect:
    said: Effect = {}
    for kind, key, data in stream:
        gone, held = said.get(key, (False, None))
        if kind == "add":
            said[key] = gone, (held or b"") + data
        elif kind == "put":
            said[key] = True, data
        elif kind == "rm":
            said[key] = True, None
        else:
            below = [each for each in said if each[0].startswith(key[0]) and each[1] == key[1]]
            said.update({each: (said[each][0], None) for each in below})
    return said


def applied(tree: Tree, *streams: Stream) -> Tree:
    result = dict(tree)
    for stream in streams:
        for key, (gone, data) in effect(stream).items():
            before = None if gone else result.get(key)
            if before is None and data is None:
                result.pop(key, None)
            else:
                result[key] = (before or b"") + (data or b"")
    return result


def changes(pfs: PfsService, stream: Stream) -> list[FileChange]:
    made: list[FileChange] = []
    for kind, (path, tag), data in stream:
        if kind != "add":
            made.append(FileRemoval(path, tag))
        if kind in ("add", "put"):
            made.append(FileAddition(path, tag, pfs.chunks.store([data])))
    return made


def tree(pfs: PfsService, layers: tuple[int, ...]) -> Tree:
    with pfs.db.read() as conn:
        return {(file.path, file.tag): b"".join(pfs.chunks.read(file.content)) for file in FileSet(conn, layers).walk()}


def held(pfs: PfsService, made: str) -> FileSetLayers:
    with pfs.db.read() as conn:
        return temporary_filesets.find(conn, made, time.time_ns())


def composed(pfs: PfsService, *parts: FileSetLayers) -> FileSetLayers:
    return pfs.transact(lambda txn: temporary_filesets.compose_all(txn.conn, pfs.chunks, parts))


def create(pfs: PfsService, *files: tuple[str, bytes]) -> str:
    return file_modification.create_file_set(
        pfs, [FileAddition(path, "default", pfs.chunks.store([data])) for path, data in files]
    )


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> PfsService:
    root = tmp_path_factory.mktemp("filesets")
    pfs = PfsService(Database(root / "db"), ChunkStore(root / "chunks"))
    pfs.transact(lambda txn: repos.create(txn, Repo("default", "a")))
    return pfs


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_streams, min_size=1, max_size=4))
def test_composing_has_the_effect_of_one_after_the_other(room: PfsService, streams: list[Stream]) -> None:
    parts = [held(room, file_modification.create_file_set(room, changes(room, stream))) for stream in streams]
    for stream, part in zip(streams, parts, strict=True):
        assert tree(room, part.tree) == applied({}, stream)
    expected = applied({}, *streams)
    assert tree(room, composed(room, *parts).tree) == expected
    assert tree(room, composed(room, parts[0], composed(room, *parts[1:])).tree) == expected
    twice = composed(room, *parts, *parts)
    assert tree(room, twice.tree) == applied({}, *streams, *streams)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_streams, max_size=3), st.lists(_streams, min_size=1, max_size=3))
def test_adding_to_a_commit_has_the_effect_of_writing_to_it(
    room: PfsService, before: list[Stream], added: list[Stream]
) -> None:
    branch = Branch(Repo("default", "a"), "master")
    files: Tree = {}
    commit = room.transact(lambda txn: commits.start(txn, branch))
    file_modification.modify(room, commit.commit, [FileRemoval("/", "default"), FileRemoval("/", "t")])
    for stream in before:
        file_modification.modify(room, commit.commit, changes(room, stream))
        for kind, key, data in stream:  # unlike in a file set, each change sees the content of the commit
            files = applied(files, [(kind, key, data)])
            if kind == "rmdir":
                files = {k: v for k, v in files.items() if not (k[0].startswith(key[0]) and k[1] == key[1])}
    parts = [file_modification.create_file_set(room, changes(room, stream)) for stream in added]
    for part in parts:
        room.transact(partial(temporary_filesets.add_to_commit, chunks=room.chunks, commit=commit.commit, text=part))
    room.transact(lambda txn: commits.finish(txn, commit, error="any, so that collisions do not matter"))
    with room.db.read() as conn:
        assert tree(room, contents.layers(conn, commits.resolve(conn, commit.commit))) == applied(files, *added)


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 5), st.integers(1, 20))
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_shards_cover_all_paths_in_portions(
    room: PfsService, sizes: list[int], most_files: int, most_bytes: int
) -> None:
    made = create(room, *((f"/{place:02}", bytes(size)) for place, size in enumerate(sizes)))
    with room.db.read() as conn:
        files = FileSet(conn, temporary_filesets.find(conn, made, time.time_ns()).tree)
        ranges = list(temporary_filesets.shards(files, most_files, most_bytes))
        portions = [list(files.walk("/", lower or None, upper or None)) for lower, upper in ranges]
    assert ranges[0][0] == ranges[-1][1] == ""
    assert [upper for _, upper in ranges[:-1]] == [lower for lower, _ in ranges[1:]]
    assert [file.content.size for portion in portions for file in portion] == sizes
    for portion in portions:
        assert len(portion) <= most_files
        assert sum(file.content.size for file in portion[:-1]) < most_bytes
    for portion in portions[:-1]:
        assert len(portion) == most_files or sum(file.content.size for file in portion) >= most_bytes


def test_a_file_set_lives_until_it_expires_and_longer_if_renewed(pfs: PfsService) -> None:
    made = create(pfs, ("/f", b"1"))
    now = time.time_ns()

    def there(after: int) -> bool:
        try:
            with pfs.db.read() as conn:
                return bool(temporary_filesets.find(conn, made, now + after * SECOND))
        except PachError as error:
            assert str(error) == f"path does not exist: file set {made} has expired or was never made"
            return False

    assert [there(after) for after in (0, 590, 601)] == [True, True, False]
    pfs.transact(lambda txn: temporary_filesets.renew(txn, made, 1800 * SECOND))
    assert [there(after) for after in (601, 1790, 1810)] == [True, True, False]
    for ttl, text in ((0, "ttl (0) must be at least one second"), (1801, f"ttl ({1801 * SECOND}) exceeds max ttl")):
        with pytest.raises(PachError) as refused:
            pfs.transact(partial(temporary_filesets.renew, text=made, ttl=ttl * SECOND))
        assert str(refused.value).startswith(text)
    with pytest.raises(NotFound, match="^tracker does not contain item: \\(fileset/0{32}\\)$"):
        pfs.transact(lambda txn: temporary_filesets.renew(txn, "0" * 32, SECOND))


def test_an_invalid_id_is_refused_with_a_reason(pfs: PfsService) -> None:
    for text, refusal in (
        ("abc", "parsing fileset.ID: too short to be ID len=3"),
        ("0" * 33, "parsing fileset.ID: too long to be ID len=33"),
        ("g" * 32, "encoding/hex: invalid byte: U+0067 'g'"),
    ):
        with pytest.raises(PachError) as refused:
            temporary_filesets.parse(text)
        assert str(refused.value) == refusal
    made = create(pfs, ("/f", b"1"))
    assert held(pfs, f"{made[:8]}-{made[8:]}".upper()) == held(pfs, made)


def test_file_sets_survive_a_restart_and_expired_ones_are_swept(tmp_path: Path) -> None:
    db, chunks = Database(tmp_path / "db"), ChunkStore(tmp_path / "chunks")
    pfs = PfsService(db, chunks)
    kept, doomed = create(pfs, ("/kept", b"kept")), create(pfs, ("/doomed", b"doomed"))
    pfs.transact(lambda txn: txn.conn.execute("UPDATE filesets SET expires = ? WHERE id = ?", (txn.now, doomed)))
    db.close()
    chunks.close()
    db, chunks = Database(tmp_path / "db"), ChunkStore(tmp_path / "chunks")
    pfs = PfsService(db, chunks)
    pfs.transact(temporary_filesets.forget_expired)
    swept = garbage_collector.sweep(db, chunks)
    assert swept.chunks == 1
    assert tree(pfs, held(pfs, kept).tree) == {("/kept", "default"): b"kept"}
    with pytest.raises(PachError, match="has expired"):
        held(pfs, doomed)
    assert garbage_collector.sweep(db, chunks) == garbage_collector.SweepCounts(0, 0)
    db.close()
    chunks.close()


def test_content_added_to_a_commit_outlives_the_file_set(pfs: PfsService, a: Repo) -> None:
    made = create(pfs, ("/f", b"1"))
    commit = pfs.transact(lambda txn: commits.start(txn, Branch(a, "master")))
    pfs.transact(lambda txn: temporary_filesets.add_to_commit(txn, pfs.chunks, commit.commit, made))
    pfs.transact(lambda txn: txn.conn.execute("UPDATE filesets SET expires = ?", (txn.now,)))
    pfs.transact(temporary_filesets.forget_expired)
    garbage_collector.sweep(pfs.db, pfs.chunks)
    pfs.transact(lambda txn: commits.finish(txn, commit))
    with pfs.db.read() as conn:
        assert tree(pfs, contents.layers(conn, commits.resolve(conn, commit.commit))) == {("/f", "default"): b"1"}
    with pytest.raises(PachError, match="has already finished$"):
        pfs.transact(lambda txn: temporary_filesets.add_to_commit(txn, pfs.chunks, commit.commit, create_in(txn)))


def create_in(txn: Transaction) -> str:
    return temporary_filesets.keep(txn, FileSetLayers())
