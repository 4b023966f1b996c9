"""Commits between closed and finished: what can be read, written and removed meanwhile, and their end."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from localpachd.errors import PachError
from localpachd.pace import Pace
from localpachd.pfs import commit_removal, commits, contents
from localpachd.pfs.files import file_modification
from localpachd.pfs.files.file_modification import FileAddition, FileChange, FileRemoval
from localpachd.pfs.pfs_entities import Branch, Commit, CommitInfo, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.upkeep.commit_finisher import CommitFinisher
from localpachd.storage.filesets import DEFAULT_TAG


@pytest.fixture
def late(pfs: PfsService) -> PfsService:
    """The file system at a late pace; no finisher runs until the test starts one."""
    return replace(pfs, pace=Pace(0.01))


@pytest.fixture
def finish(late: PfsService) -> Iterator[CommitFinisher]:
    """A finisher that the test starts."""
    finisher = CommitFinisher(late)
    yield finisher
    finisher.stop()


def added(pfs: PfsService, path: str, text: str) -> FileAddition:
    return FileAddition(path, DEFAULT_TAG, pfs.chunks.store([text.encode()]))


def put(pfs: PfsService, repo: Repo, files: Mapping[str, str]) -> CommitInfo:
    """Writes whole files in one commit on master, which is closed."""
    changes: list[FileChange] = []
    for path, text in files.items():
        changes += [FileRemoval(path, DEFAULT_TAG), added(pfs, path, text)]
    file_modification.modify(pfs, Commit(repo, branch="master"), changes)
    return head(pfs, repo)


def head(pfs: PfsService, repo: Repo) -> CommitInfo:
    with pfs.db.read() as conn:
        return commits.resolve(conn, Commit(repo, branch="master"))


def ended(pfs: PfsService, info: CommitInfo) -> CommitInfo:
    """A commit, once it is finished."""

    def look() -> CommitInfo | None:
        with pfs.db.read() as conn:
            found = commits.by_seq(conn, info.seq)
        return found if found.finished is not None else None

    found = pfs.changes.wait_for(look)
    assert found is not None
    return found


def files(pfs: PfsService, repo: Repo) -> dict[str, bytes]:
    with pfs.db.read() as conn:
        found = list(contents.fileset(conn, commits.resolve(conn, Commit(repo, branch="master"))).walk())
    return {file.path: b"".join(pfs.chunks.read(file.content)) for file in found}


def test_a_closed_commit_is_finished_later(late: PfsService, a: Repo, finish: CommitFinisher) -> None:
    closed = put(late, a, {"/x": "one"})
    assert closed.finishing is not None
    assert (closed.finished, closed.size) == (None, None)
    with late.db.read() as conn, pytest.raises(contents.UnfinishedCommit):
        contents.settled(conn, closed)
    finish.start()
    assert ended(late, closed).size == 3
    assert files(late, a) == {"/x": b"one"}


def test_a_chain_of_closed_commits_is_finished_in_order(late: PfsService, a: Repo, finish: CommitFinisher) -> None:
    chain = [put(late, a, {f"/{number}": "x" * number}) for number in range(5)]
    with pytest.raises(PachError, match="has already finished"):
        late.transact(lambda txn: commits.finish(txn, chain[-1]))
    finish.start()
    assert [ended(late, each).size for each in reversed(chain)] == [10, 6, 3, 1, 0]


def test_commits_left_by_a_late_server_are_finished_by_a_prompt_one(pfs: PfsService, late: PfsService, a: Repo) -> None:
    chain = [put(late, a, {f"/{number}": "x"}) for number in range(3)]
    CommitFinisher(pfs).start()
    with pfs.db.read() as conn:
        assert [each.size for each in commits.by_seqs(conn, [info.seq for info in chain])] == [1, 2, 3]
        assert commits.finishing(conn) == []


def test_a_fault_is_found_when_the_commit_is_finished(late: PfsService, a: Repo, finish: CommitFinisher) -> None:
    whole = put(late, a, {"/x": "file"})
    faulty = put(late, a, {"/x/y": "below a file"})
    assert faulty.error == ""
    after = put(late, a, {"/z": "z"})
    finish.start()
    assert (ended(late, whole).error, ended(late, after).error) == ("", "")
    assert ended(late, faulty).error
    assert files(late, a) == {"/x": b"file", "/z": b"z"}


def test_appended_content_stands_on_a_finished_commit(late: PfsService, a: Repo, finish: CommitFinisher) -> None:
    put(late, a, {"/x": "one"})
    put(late, a, {"/x/y": "a fault"})
    finish.start()
    file_modification.modify(late, Commit(a, branch="master"), [added(late, "/x", "two")])
    ended(late, head(late, a))
    assert files(late, a) == {"/x": b"onetwo"}


def test_a_directory_is_removed_only_from_known_content(late: PfsService, a: Repo, finish: CommitFinisher) -> None:
    first = put(late, a, {"/d/1": "1"})
    file_modification.modify(late, Commit(a, branch="master"), [FileRemoval("/d/", DEFAULT_TAG)])
    second = head(late, a)
    with pytest.raises(PachError, match=f"base commit .*{first.commit.id} for commit .*{second.commit.id} unfinished"):
        file_modification.modify(late, Commit(a, branch="master"), [FileRemoval("/d/", DEFAULT_TAG)])
    opened = late.transact(lambda txn: commits.start(txn, Branch(a, "master")))
    with pytest.raises(PachError, match=f"base commit .*{second.commit.id} for commit .*{opened.commit.id} unfinished"):
        file_modification.modify(late, opened.commit, [FileRemoval("/d/", DEFAULT_TAG)])
    finish.start()
    ended(late, second)
    file_modification.modify(late, opened.commit, [FileRemoval("/d/", DEFAULT_TAG), added(late, "/e", "e")])
    assert files(late, a) == {"/e": b"e"}


def test_a_closed_commit_can_be_deleted(late: PfsService, a: Repo, finish: CommitFinisher) -> None:
    first = put(late, a, {"/x": "one"})
    second = put(late, a, {"/y": "two"})
    with pytest.raises(PachError, match="cannot squash until child commit .* is finished"):
        late.transact(lambda txn: commit_removal.squash(txn, first.commit))
    late.transact(lambda txn: commit_removal.drop(txn, second.commit))
    finish.start()
    assert ended(late, first).size == 3
    assert files(late, a) == {"/x": b"one"}
