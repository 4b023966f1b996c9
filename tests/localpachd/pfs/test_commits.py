from functools import partial

import pytest

from localpachd.errors import NotFound, PachError
from localpachd.pfs import branches, commits, contents, history
from localpachd.pfs.pfs_entities import Branch, Commit, CommitInfo, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.storage.filesets import FileContent


def write(pfs: PfsService, repo: Repo, files: dict[str, bytes], error: str = "") -> CommitInfo:
    """A finished commit that adds these files."""

    def step(txn: Transaction) -> CommitInfo:
        commit = commits.start(txn, Branch(repo, "master"))
        entries: list[tuple[str, str, FileContent | None]] = [
            (path, "default", pfs.chunks.store([data])) for path, data in sorted(files.items())
        ]
        contents.add_layer(txn, commit, entries)
        return commits.finish(txn, commit, error)

    return pfs.transact(step)


def tree(pfs: PfsService, commit: Commit) -> dict[str, bytes]:
    with pfs.db.read() as conn:
        files = contents.fileset(conn, commits.resolve(conn, commit))
        return {file.path: b"".join(pfs.chunks.read(file.content)) for file in files.walk()}


def test_history_is_addressed_by_branch_id_and_ancestry(pfs: PfsService, a: Repo) -> None:
    made = [write(pfs, a, {"/f": str(number).encode()}).commit.id for number in range(4)]

    def found(reference: str) -> str:
        with pfs.db.read() as conn:
            return commits.resolve(conn, Commit(a, reference)).commit.id

    assert found("master") == found(made[3]) == found("master^0") == made[3]
    assert found("master^") == found("master~1") == made[2]
    assert found(f"{made[3]}^^") == made[1]
    assert found("master.1") == made[0]
    assert found("master.2") == made[1]
    for beyond in ("master^4", "master.5"):
        with pytest.raises(NotFound, match="^commit default/a@.* not found$"):
            found(beyond)


def test_references_that_lead_nowhere_say_so_in_pachyderms_words(pfs: PfsService, a: Repo) -> None:
    unknown = "0123456789ab4cdef0123456789abcde"
    with pfs.db.read() as conn:
        with pytest.raises(NotFound, match='^branch "nope" not found in repo default/a$'):
            commits.resolve(conn, Commit(a, branch="nope"))
        with pytest.raises(NotFound, match=f"^commit default/a@{unknown} not found$"):
            commits.resolve(conn, Commit(a, unknown))
        with pytest.raises(PachError, match="^cannot resolve commit with no ID or branch$"):
            commits.resolve(conn, Commit(a))


def test_a_commit_reads_as_its_parent_with_its_own_writes_on_top(pfs: PfsService, a: Repo) -> None:
    first = write(pfs, a, {"/x": b"1", "/y": b"22"})
    second = write(pfs, a, {"/x": b"333"})
    assert tree(pfs, first.commit) == {"/x": b"1", "/y": b"22"}
    assert tree(pfs, second.commit) == {"/x": b"333", "/y": b"22"}
    assert (first.size, second.size) == (3, 5)


def test_an_errored_commit_is_readable_but_no_base(pfs: PfsService, a: Repo) -> None:
    write(pfs, a, {"/x": b"1"})
    bad = write(pfs, a, {"/y": b"2"}, error="datum 1 failed")
    after = write(pfs, a, {"/z": b"3"})
    assert bad.error == "datum 1 failed" and bad.size is None
    assert tree(pfs, bad.commit) == {"/x": b"1", "/y": b"2"}
    assert tree(pfs, after.commit) == {"/x": b"1", "/z": b"3"}
    assert after.parent == bad.commit


def test_an_open_commit_holds_up_the_next_one(pfs: PfsService, a: Repo) -> None:
    branch = Branch(a, "master")
    opened = pfs.transact(lambda txn: commits.start(txn, branch))
    with pytest.raises(PachError, match=f"^parent commit default/a@{opened.commit.id} has not been finished$"):
        pfs.transact(lambda txn: commits.start(txn, branch))
    pfs.transact(lambda txn: commits.finish(txn, opened))
    with pytest.raises(PachError, match=f"^commit default/a@{opened.commit.id} has already finished$"):
        pfs.transact(lambda txn: commits.finish(txn, opened))


def test_one_path_from_two_datums_is_an_error_of_the_commit(pfs: PfsService, a: Repo) -> None:
    def step(txn: Transaction) -> CommitInfo:
        info = commits.start(txn, Branch(a, "master"))
        for datum in ("1" * 64, "2" * 64):
            contents.add_layer(txn, info, [("/out", datum, pfs.chunks.store([b"x"]))])
        return commits.finish(txn, info)

    info = pfs.transact(step)
    assert info.finished is not None
    assert info.error.startswith("duplicate path output by different datums (/out from ")


@pytest.mark.parametrize("paths", [("/p", "/p/q"), ("/p/q/r", "/p")])
def test_a_path_that_is_file_and_directory_is_an_error_of_the_commit(
    pfs: PfsService, a: Repo, paths: tuple[str, str]
) -> None:
    write(pfs, a, {paths[0]: b"1"})
    # The path that is named is the one inside, as in the original's comparison of neighbours.
    assert write(pfs, a, {paths[1]: b"2"}).error == f"file / directory path collision ({max(paths)})"


def test_a_datums_files_are_removed_by_its_tag_alone(pfs: PfsService, a: Repo) -> None:
    one, two = "1" * 64, "2" * 64

    def first(txn: Transaction) -> None:
        info = commits.start(txn, Branch(a, "master"))
        contents.add_layer(txn, info, [("/1", one, pfs.chunks.store([b"1"])), ("/2", two, pfs.chunks.store([b"2"]))])
        commits.finish(txn, info)

    def second(txn: Transaction) -> CommitInfo:
        info = commits.start(txn, Branch(a, "master"))
        contents.delete_tags(txn, info, [one])
        return commits.finish(txn, info)

    pfs.transact(first)
    info = pfs.transact(second)
    assert tree(pfs, info.commit) == {"/2": b"2"}
    assert info.size == 1


def test_listing_goes_newest_first_and_along_a_line(pfs: PfsService, a: Repo) -> None:
    made = [write(pfs, a, {"/f": str(number).encode()}).commit.id for number in range(4)]
    with pfs.db.read() as conn:
        assert [info.commit.id for info in history.list_repo(conn, a)] == made[::-1]
        line = history.list_line(conn, Commit(a, made[3]), Commit(a, made[0]))
        assert [info.commit.id for info in line] == [made[3], made[2], made[1]]


def test_a_branch_made_from_a_finished_commit_keeps_reading_it(pfs: PfsService, a: Repo) -> None:
    first = write(pfs, a, {"/x": b"1"})
    pfs.transact(lambda txn: branches.create(txn, Branch(a, "other"), head=first.commit))
    assert tree(pfs, Commit(a, branch="other")) == {"/x": b"1"}


def test_an_open_commit_is_bounded_by_what_it_stands_on_and_what_was_written(pfs: PfsService, a: Repo) -> None:
    first = write(pfs, a, {"/x": b"123"})

    def begin(txn: Transaction) -> CommitInfo:
        info = commits.start(txn, Branch(a, "master"))
        contents.add_layer(txn, info, [("/x", "default", None), ("/y", "default", pfs.chunks.store([b"45"]))])
        return info

    opened = pfs.transact(begin)
    with pfs.db.read() as conn:
        assert contents.size_bound(conn, first) == 3
        assert contents.size_bound(conn, opened) == 5
    assert pfs.transact(lambda txn: commits.finish(txn, opened)).size == 2


def test_an_open_commit_that_many_write_to_keeps_few_layers(pfs: PfsService, a: Repo) -> None:
    opened = pfs.transact(lambda txn: commits.start(txn, Branch(a, "master")))
    for number in range(120):
        entry = (f"/{number:03}", "default", pfs.chunks.store([b"%d" % number]))
        pfs.transact(partial(contents.add_layer, info=opened, entries=[entry]))
    with pfs.db.read() as conn:
        assert len(contents.diff_layers(conn, opened)) <= 25
    assert len(tree(pfs, opened.commit)) == 120


def test_a_list_may_begin_at_a_time(pfs: PfsService, a: Repo) -> None:
    made = [write(pfs, a, {"/f": str(number).encode()}) for number in range(4)]
    with pfs.db.read() as conn:
        older = history.list_repo(conn, a, beyond=made[2].started)
        assert [info.seq for info in older] == [made[1].seq, made[0].seq]
        newer = history.list_repo(conn, a, reverse=True, beyond=made[1].started)
        assert [info.seq for info in newer] == [made[2].seq, made[3].seq]
        assert [info.seq for info in history.list_repo(conn, None)] == [info.seq for info in made[::-1]]
