"""Commits between closed and finished: what can be read, written and removed meanwhile, and their end."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from localpachd.errors import PachError
from localpachd.pace import Pace
from localpachd.pfs import commits, contents, removal
from localpachd.pfs.entities import Branch, Commit, CommitInfo, Repo
from localpachd.pfs.files import modify
from localpachd.pfs.files.staging import Addition, Change, Removal
from localpachd.pfs.service import Pfs
from localpachd.pfs.upkeep.finisher import Finisher
from localpachd.storage.filesets import DEFAULT_TAG


@pytest.fixture
def late(pfs: Pfs) -> Pfs:
    """The file system at a late pace; no finisher runs until the test starts one."""
    return replace(pfs, pace=Pace(0.01))


@pytest.fixture
def finish(late: Pfs) -> Iterator[Finisher]:
    """A finisher that the test starts."""
    finisher = Finisher(late)
    yield finisher
    finisher.stop()


def added(pfs: Pfs, path: str, text: str) -> Addition:
    return Addition(path, DEFAULT_TAG, pfs.chunks.store([text.encode()]))


def put(pfs: Pfs, repo: Repo, files: Mapping[str, str]) -> CommitInfo:
    """Writes whole files in one commit on master, which is closed."""
    changes: list[Change] = []
    for path, text in files.items():
        changes += [Removal(path, DEFAULT_TAG), added(pfs, path, text)]
    modify.modify(pfs, Commit(repo, branch="master"), changes)
    return head(pfs, repo)


def head(pfs: Pfs, repo: Repo) -> CommitInfo:
    with pfs.db.read() as conn:
        return commits.resolve(conn, Commit(repo, branch="master"))


def ended(pfs: Pfs, info: CommitInfo) -> CommitInfo:
    """A commit, once it is finished."""

    def look() -> CommitInfo | None:
        with pfs.db.read() as conn:
            found = commits.by_seq(conn, info.seq)
        return found if found.finished is not None else None

    found = pfs.changes.wait_for(look)
    assert found is not None
    return found


def files(pfs: Pfs, repo: Repo) -> dict[str, bytes]:
    with pfs.db.read() as conn:
        found = list(contents.fileset(conn, commits.resolve(conn, Commit(repo, branch="master"))).walk())
    return {file.path: b"".join(pfs.chunks.read(file.content)) for file in found}


def test_a_closed_commit_is_finished_later(late: Pfs, a: Repo, finish: Finisher) -> None:
    closed = put(late, a, {"/x": "one"})
    assert closed.finishing is not None
    assert (closed.finished, closed.size) == (None, None)
    with late.db.read() as conn, pytest.raises(contents.StillFinishing):
        contents.settled(conn, closed)
    finish.start()
    assert ended(late, closed).size == 3
    assert files(late, a) == {"/x": b"one"}


def test_a_chain_of_closed_commits_is_finished_in_order(late: Pfs, a: Repo, finish: Finisher) -> None:
    chain = [put(late, a, {f"/{number}": "x" * number}) for number in range(5)]
    with pytest.raises(PachError, match="has already finished"):
        late.transact(lambda txn: commits.finish(txn, chain[-1]))
    finish.start()
    assert [ended(late, each).size for each in reversed(chain)] == [10, 6, 3, 1, 0]


def test_commits_left_by_a_late_server_are_finished_by_a_prompt_one(pfs: Pfs, late: Pfs, a: Repo) -> None:
    chain = [put(late, a, {f"/{number}": "x"}) for number in range(3)]
    Finisher(pfs).start()
    with pfs.db.read() as conn:
        assert [each.size for each in commits.by_seqs(conn, [info.seq for info in chain])] == [1, 2, 3]
        assert commits.finishing(conn) == []


def test_a_fault_is_found_when_the_commit_is_finished(late: Pfs, a: Repo, finish: Finisher) -> None:
    whole = put(late, a, {"/x": "file"})
    faulty = put(late, a, {"/x/y": "below a file"})
    assert faulty.error == ""
    after = put(late, a, {"/z": "z"})
    finish.start()
    assert (ended(late, whole).error, ended(late, after).error) == ("", "")
    assert ended(late, faulty).error
    assert files(late, a) == {"/x": b"file", "/z": b"z"}


def test_appended_content_stands_on_a_finished_commit(late: Pfs, a: Repo, finish: Finisher) -> None:
    put(late, a, {"/x": "one"})
    put(late, a, {"/x/y": "a fault"})
    finish.start()
    modify.modify(late, Commit(a, branch="master"), [added(late, "/x", "two")])
    ended(late, head(late, a))
    assert files(late, a) == {"/x": b"onetwo"}


def test_a_directory_is_removed_only_from_known_content(late: Pfs, a: Repo, finish: Finisher) -> None:
    first = put(late, a, {"/d/1": "1"})
    modify.modify(late, Commit(a, branch="master"), [Removal("/d/", DEFAULT_TAG)])
    second = head(late, a)
    with pytest.raises(PachError, match=f"base commit .*{first.commit.id} for commit .*{second.commit.id} unfinished"):
        modify.modify(late, Commit(a, branch="master"), [Removal("/d/", DEFAULT_TAG)])
    opened = late.transact(lambda txn: commits.start(txn, Branch(a, "master")))
    with pytest.raises(PachError, match=f"base commit .*{second.commit.id} for commit .*{opened.commit.id} unfinished"):
        modify.modify(late, opened.commit, [Removal("/d/", DEFAULT_TAG)])
    finish.start()
    ended(late, second)
    modify.modify(late, opened.commit, [Removal("/d/", DEFAULT_TAG), added(late, "/e", "e")])
    assert files(late, a) == {"/e": b"e"}


def test_a_closed_commit_can_be_deleted(late: Pfs, a: Repo, finish: Finisher) -> None:
    first = put(late, a, {"/x": "one"})
    second = put(late, a, {"/y": "two"})
    with pytest.raises(PachError, match="cannot squash until child commit .* is finished"):
        late.transact(lambda txn: removal.squash(txn, first.commit))
    late.transact(lambda txn: removal.drop(txn, second.commit))
    finish.start()
    assert ended(late, first).size == 3
    assert files(late, a) == {"/x": b"one"}
