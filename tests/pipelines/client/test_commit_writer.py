"""Commits on master, one writer at a time: waiting for others, and commits whose writer is gone."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import grpc
import pytest
from PIL import Image
from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.client import branches, commit_owner
from pipelines.client.branch_head import BranchHead
from pipelines.client.commit_writer import CommitWriter, MovedHeadError
from pipelines.client.file_sets import FileSets
from pipelines.client.repository import DeleteFile, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import explained
from pipelines.client.transactions import transaction
from pipelines.errors import LookalikeError
from tests.command import Command
from tests.pipelines import forked_writers
from tests.pipelines.grpc_proxy import BusyDatabase, passed_on
from tests.stages.scenes import saved

REPO = "images"

pytestmark = pytest.mark.late_alone


class Heard:
    """What a connection says while it waits."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.news = threading.Condition()

    def __call__(self, text: str) -> None:
        with self.news:
            self.said += [text] if text and text not in self.said else []
            self.news.notify_all()

    def wait(self) -> str:
        """The first sentence."""
        with self.news:
            assert self.news.wait_for(lambda: self.said, 60)
            return self.said[0]


@pytest.fixture
def heard() -> Heard:
    """See Heard."""
    return Heard()


@pytest.fixture
def repo(connection: Connection, heard: Heard) -> Repository:
    """A repo without files, on a connection that is heard."""
    connection.client.create_repo(REPO, project_name=connection.project)
    repo = Repository(replace(connection, waiting=heard), REPO)
    repo.write([DeleteFile("/nothing")])
    return repo


@contextmanager
def writer(connection: Connection) -> Iterator["subprocess.Popen[str]"]:
    """A process whose commit is open, until it is killed."""
    with forked_writers.start("open commit", connection, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            yield process
        finally:
            process.kill()


def files(repo: Repository) -> dict[str, bytes]:
    return dict(repo.read_all("/**"))


def head(connection: Connection) -> pfs_pb2.CommitInfo:
    return next(iter(connection.client.list_commit(REPO, project_name=connection.project)))


def test_a_commit_names_its_writer(connection: Connection, repo: Repository) -> None:
    made = repo.write([PutFile("/a", b"a")])
    info = head(connection)
    assert (info.commit.id, info.HasField("finishing")) == (made, True)
    assert commit_owner.read(info.description) == commit_owner.current_process()
    repo.write([PutFile("/b", b"b")], description="imported")
    assert head(connection).description == "imported"


def test_an_owner_is_gone_when_its_process_is() -> None:
    assert not commit_owner.current_process().gone
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        there = replace(commit_owner.current_process(), process=process.pid)
        assert there.gone  # the number is that of another process, started later
    assert replace(there, started=0).gone
    assert not replace(there, machine="0" * 12).gone  # of another machine: not known
    assert not replace(there, machine="").gone
    assert commit_owner.read("a user's own description") is None
    assert commit_owner.read(str(replace(there, machine=""))) == replace(there, machine="")


@pytest.mark.versions
def test_a_commit_whose_writer_was_killed_is_finished_by_the_next(
    connection: Connection, repo: Repository, heard: Heard
) -> None:
    with writer(connection) as process:
        left = head(connection)
        assert not left.HasField("finishing")
        process.kill()
        process.wait()
        repo.write([PutFile("/a", b"a")])
    assert files(repo) == {"/a": b"a", "/other": b"by another"}
    (said,) = heard.said
    assert f"finished commit {left.commit.id}, which " in said
    assert f"(process {process.pid}) had left open" in said


def test_a_search_finishes_the_commit_of_a_killed_writer_of_the_library(
    repo: Repository, as_user: Connection, command: Command
) -> None:
    """Which holds up the index, and with it every search."""
    as_user.client.create_repo("queries", project_name=as_user.project)
    (command.directory / "a.png").write_bytes(saved(Image.new("L", (8, 8))))
    with writer(as_user) as process:
        assert "had left open" not in command.says("query", "a.png", "--no-wait")
        assert not head(as_user).HasField("finishing")
        process.kill()
        process.wait()
        assert f"(process {process.pid}) had left open\n" in command.says("query", "a.png", "--no-wait")
        assert head(as_user).HasField("finishing")


def test_an_interrupted_writer_leaves_no_open_commit(connection: Connection, repo: Repository) -> None:
    with writer(connection) as process:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        assert head(connection).HasField("finishing")
    assert files(repo) == {"/other": b"by another"}


def test_a_writer_that_takes_too_long_starts_again(connection: Connection, repo: Repository) -> None:
    """Others finish its commit, and both writes are there in the end."""
    is_open, may_go_on = threading.Event(), threading.Event()
    with FileSets(connection) as filesets:

        def content(_: object) -> dict[str, str]:
            if may_go_on.is_set():
                return {REPO: filesets.make(repo.requests([PutFile("/slow", b"slow")]))}
            if head(connection).HasField("finishing"):
                repo.write([PutFile("/other", b"moves the head")])
                return {REPO: ""}
            is_open.set()
            assert may_go_on.wait(60)
            return {REPO: filesets.make(repo.requests([PutFile("/slow", b"slow, and too late")]))}

        with ThreadPoolExecutor(1) as threads:
            slow = threads.submit(CommitWriter(connection, REPO).make, content)
            assert is_open.wait(60)
            fast = filesets.make(repo.requests([PutFile("/fast", b"fast")]))
            CommitWriter(connection, REPO, longest=0.1).make(lambda _: {REPO: fast})
            may_go_on.set()
            assert slow.result(60) == head(connection).commit.id
    assert files(repo) == {"/fast": b"fast", "/slow": b"slow", "/other": b"moves the head"}


@pytest.mark.versions
def test_an_open_commit_of_others_is_waited_for(connection: Connection, repo: Repository, heard: Heard) -> None:
    client, project = connection.client, connection.project
    commit = client.start_commit(REPO, "master", project_name=project)
    with ThreadPoolExecutor(1) as threads:
        write = threads.submit(repo.write, [PutFile("/a", b"a")])
        said = heard.wait()
        assert said.startswith(f"waiting for commit {commit.id} of images, which another client has open")
        assert "pachctl finish commit images@master" in said
        client.put_file_bytes(commit, "/theirs", b"t")
        client.finish_commit(commit)
        write.result(60)
    assert files(repo) == {"/a": b"a", "/theirs": b"t"}


def test_directories_are_removed_as_they_are_at_that_moment(repo: Repository) -> None:
    repo.write([PutFile(f"/{name}", b"1") for name in ("d/a", "d/e/b", "dd", "a", "ab")])
    repo.write([PutFile("/d/new", b"4"), DeleteFile("/d/"), PutFile("/d/newer", b"5"), DeleteFile("/dd/")])
    repo.write([DeleteFile("/a"), DeleteFile("/gone"), DeleteFile("/gone/")])
    assert files(repo) == {"/d/newer": b"5", "/dd": b"1", "/ab": b"1"}


@pytest.mark.versions
def test_a_failed_write_leaves_nothing(connection: Connection, repo: Repository) -> None:
    with pytest.raises(grpc.RpcError, match="globbing character"):
        repo.write([PutFile("/a", b"a"), PutFile("/*", b"invalid")])
    assert len(list(connection.client.list_commit(REPO, project_name=connection.project))) == 1
    with pytest.raises(LookalikeError, match="the repo nosuch does not exist"):
        Repository(connection, "nosuch").write([PutFile("/a", b"a")])


def test_file_sets_are_renewed_while_an_upload_goes_on(connection: Connection, repo: Repository) -> None:
    called = Heard()
    with passed_on(connection, heard=called) as through, FileSets(through, renew_every=0.01) as filesets:
        filesets.make(repo.requests([PutFile("/a", b"a")]))

        def slow() -> Iterator[bytes]:
            yield b"first"
            with called.news:
                assert called.news.wait_for(lambda: "RenewFileSet" in called.said, 60)
            yield b"last"

        filesets.make(repo.requests([PutFile("/b", slow())]))


def test_a_commit_that_was_filled_before_its_writer_died_keeps_its_description(
    connection: Connection, repo: Repository
) -> None:
    """By it an import knows that the commit is whole; of one without files it makes the commit again."""
    gone = replace(commit_owner.current_process(), started=0)
    description = f"{gone} add a (was {'a' * 12}4{'a' * 19} of 2026-11-01T00:00:00+00:00)"
    for filled in (True, False):
        branch = connection.branch(REPO)
        commit = connection.pfs.StartCommit(pfs_pb2.StartCommitRequest(branch=branch, description=description))
        if filled:
            connection.client.put_file_bytes(commit, "/a", b"a")
        BranchHead(connection, REPO).finish_abandoned()
        assert head(connection).description == (description if filled else str(gone))


def test_a_commit_is_made_on_the_one_that_it_is_for_or_not_at_all(connection: Connection, repo: Repository) -> None:
    first = repo.write([PutFile("/a", b"a")])
    second = repo.write([PutFile("/b", b"b")], onto=first)
    with pytest.raises(MovedHeadError) as refused:
        repo.write([PutFile("/c", b"c")], onto=first)
    assert (refused.value.newest, head(connection).commit.id) == (second, second)

    def others_write(parents: Mapping[str, str]) -> dict[str, str]:
        if parents[REPO] == second:
            repo.write([PutFile("/others", b"")])
        return {REPO: filesets.make(repo.requests([PutFile("/c", b"c")]))}

    with FileSets(connection) as filesets, pytest.raises(MovedHeadError):
        CommitWriter(connection, REPO).make(others_write, onto={REPO: second})
    assert files(repo) == {"/a": b"a", "/b": b"b", "/others": b""}


_WRITES = ("StartCommit", "AddFileSet", "FinishCommit")


@pytest.mark.parametrize("database", [{"refused": dict.fromkeys(_WRITES, 2)}, {"done": dict.fromkeys(_WRITES, 1)}])
def test_a_busy_database_costs_no_commit_and_makes_none_twice(
    connection: Connection, repo: Repository, heard: Heard, database: dict[str, dict[str, int]]
) -> None:
    with passed_on(connection, database=BusyDatabase(**database)) as through:
        made = Repository(through, REPO).write([PutFile("/a", b"a")])
    assert (head(connection).commit.id, heard.said) == (made, [])
    assert len(list(connection.client.list_commit(REPO, project_name=connection.project))) == 2
    assert head(connection).HasField("finishing")
    assert files(repo) == {"/a": b"a"}


def test_a_database_that_stays_busy_is_named(connection: Connection, repo: Repository) -> None:
    with passed_on(connection, database=BusyDatabase({"StartCommit": 100})) as through:
        busy = pytest.raises(LookalikeError, match="database of the server at .* is too busy: run this again")
        with busy, explained():
            Repository(through, REPO).write([PutFile("/a", b"a")])
    assert files(repo) == {}


@pytest.mark.parametrize("kind", ["refused", "done"])
def test_a_transaction_holds_each_call_once(connection: Connection, repo: Repository, kind: str) -> None:
    calls = ("StartTransaction", "CreateBranch", "FinishTransaction")
    with passed_on(connection, database=BusyDatabase(**{kind: dict.fromkeys(calls, 1)})) as through:
        made = repo.write([PutFile("/a", b"a")])
        with transaction(through) as begun:
            branches.move(through, REPO, "one", made, begun)
            branches.move(through, REPO, "two", made, begun)
    assert [branches.head(connection, REPO, name) for name in ("one", "two")] == [made, made]


def test_a_busy_database_is_read_again(connection: Connection, repo: Repository) -> None:
    made = repo.write([PutFile("/a", b"a")])
    with passed_on(connection, database=BusyDatabase({"InspectBranch": 3})) as through:
        assert through.retry(branches.head, through, REPO, "master") == made
