"""Commit sets of several repos: one id and one job downstream, and never a half, wherever a writer dies."""

import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from pipelines.client.commit_writer import CommitWriter, MovedHeadError
from pipelines.client.file_sets import FileSets
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.open_commits import is_open
from pipelines.client.repository import DeleteFile, PutFile, Repository, write_set
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from tests.pipelines import forked_writers
from tests.pipelines.grpc_proxy import passed_on
from tests.pipelines.stand_ins import deploy_specs, shell_spec

REPOS = ("images", "masks")

STEPS = ("StartCommit", "FinishTransaction", "AddFileSet", "AddFileSet", "FinishCommit", "FinishTransaction")
"""Calls of a write, in order. The commits are open after the second, half of the write is there after the third, and
all of it after the fourth."""

pytestmark = pytest.mark.late_alone


def rarely(step: int) -> Any:
    """A step that seldom finds a fault that the others do not."""
    return pytest.param(step, marks=pytest.mark.only_in_all)


class Pause:
    """Holds the reply to one call of a writer back, once it has taken effect."""

    def __init__(self, step: int, steps: Sequence[str] = STEPS) -> None:
        self._left = [*steps[: step + 1]]
        self.reached = threading.Event()
        self.ended = threading.Event()

    def __call__(self, method: str) -> None:
        if self._left and method == self._left[0]:
            del self._left[0]
            if not self._left:
                self.reached.set()
                self.ended.wait(60)


@contextmanager
def stopped_after(connection: Connection, step: int) -> Iterator["tuple[subprocess.Popen[str], Pause]"]:
    """A process that has made one of the calls of its write, and waits for the reply."""
    pause = Pause(step)
    with (
        passed_on(connection, heard=pause) as through,
        forked_writers.start("two repos", through, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process,
    ):
        try:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
            assert pause.reached.wait(60)
            yield process, pause
        finally:
            process.kill()
            pause.ended.set()


@pytest.fixture
def repos(connection: Connection) -> dict[str, Repository]:
    """Two repos with a file each."""
    for name in REPOS:
        connection.client.create_repo(name, project_name=connection.project)
    made = write_set(connection, {name: [PutFile("/old", b"old")] for name in REPOS})
    assert {CommitWriter(connection, name).newest() for name in REPOS} == {made}
    return {name: Repository(connection, name) for name in REPOS}


def paths(repos: dict[str, Repository]) -> dict[str, set[str]]:
    return {name: {each.path for each in repo.files()} for name, repo in repos.items()}


def both(*names: str) -> dict[str, set[str]]:
    return {name: set(names) for name in REPOS}


def test_a_commit_set_is_one_job_of_each_pipeline_downstream(
    connection: Connection, repos: dict[str, Repository]
) -> None:
    cross = {"cross": [{"pfs": {"repo": name, "glob": "/"}} for name in REPOS]}
    deploy_specs(connection, {**shell_spec("both", "images", "cp -r /pfs/images/. /pfs/out"), "input": cross})
    jobs = ProjectJobs(connection)
    before = {job.id for job in jobs.last("both", 9)}
    made = write_set(connection, {name: [PutFile("/new", name.encode()), DeleteFile("/old")] for name in REPOS})
    assert {CommitWriter(connection, name).newest() for name in REPOS} == {made}
    assert {job.id for job in jobs.last("both", 9)} - before == {made}
    assert [job.pipeline for job in jobs.of_set(made)] == ["both"]
    assert paths(repos) == both("/new")


@pytest.mark.parametrize("step", [rarely(0), 1, 2, 3, rarely(4), rarely(5)])
def test_of_a_writer_killed_anywhere_nothing_is_half(
    connection: Connection, repos: dict[str, Repository], step: int
) -> None:
    """Whichever of its repos the next one writes to, everything is finished and whole."""
    with stopped_after(connection, step) as (process, _):
        process.kill()
        process.wait()
        other = REPOS[step % 2]
        repos[other].write([PutFile("/other", b"by another")])
    whole = both("/old", "/new") if step >= STEPS.index("FinishCommit") - 1 else both("/old")
    assert paths(repos) == {name: each | ({"/other"} if name == other else set()) for name, each in whole.items()}
    for name in REPOS:
        assert connection.inspect(connection.commit(name, "")).HasField("finishing")


@pytest.mark.parametrize("step", [rarely(0), rarely(1), 2, rarely(3), rarely(4), rarely(5)])
def test_an_interrupted_writer_leaves_no_half_and_nothing_open(
    connection: Connection, repos: dict[str, Repository], step: int
) -> None:
    with stopped_after(connection, step) as (process, _):
        process.send_signal(signal.SIGINT)
        process.wait(60)
        assert process.stderr is not None
        assert "KeyboardInterrupt" in process.stderr.read().splitlines()[-1]
        found = paths(repos)
        assert found in (both("/old"), both("/old", "/new"))
        for name in REPOS:
            assert connection.inspect(connection.commit(name, "")).HasField("finishing")


@pytest.mark.parametrize("moved", REPOS)
def test_if_one_of_the_repos_has_moved_nothing_is_written(
    connection: Connection, repos: dict[str, Repository], moved: str
) -> None:
    read = {name: CommitWriter(connection, name).newest() for name in REPOS}
    new = {name: [PutFile("/new", b"new")] for name in REPOS}
    newest = repos[moved].write([PutFile("/other", b"before it is prepared")])
    with pytest.raises(MovedHeadError, match=f"written to {moved} meanwhile") as refused:
        write_set(connection, new, onto=read)
    assert refused.value.newest == newest
    read[moved] = newest

    with FileSets(connection) as filesets, pytest.raises(MovedHeadError):

        def content(parents: Mapping[str, str]) -> dict[str, str]:
            repos[moved].write([PutFile("/other", b"whenever it is prepared")])
            return {name: filesets.make(repos[name].requests(each)) for name, each in new.items()}

        CommitWriter(connection, *REPOS).make(content, onto=read)
    assert paths(repos) == {name: {"/old", "/other"} if name == moved else {"/old"} for name in REPOS}


def test_content_is_made_on_top_of_the_parents_that_it_gets(
    connection: Connection, repos: dict[str, Repository]
) -> None:
    """Others write to the second repo whenever content is prepared, so it is asked for once more in the end."""
    asked = []
    with FileSets(connection) as filesets:

        def content(parents: Mapping[str, str]) -> dict[str, str]:
            asked.append(dict(parents))
            if not is_open(connection.inspect(connection.commit("masks", ""))):
                repos["masks"].write([PutFile("/other", str(len(asked)).encode())])
            edits = [PutFile("/new", str(len(asked)).encode())]
            return {name: filesets.make(repos[name].requests(edits)) for name in REPOS}

        made = CommitWriter(connection, *REPOS).make(content)
    below = {name: connection.inspect(connection.commit(name, made)).parent_commit.id for name in REPOS}
    assert asked[-1] == below
    assert {repo.read("/new") for repo in repos.values()} == {str(len(asked)).encode()}


def test_a_writer_that_takes_too_long_starts_both_again(connection: Connection, repos: dict[str, Repository]) -> None:
    with stopped_after(connection, STEPS.index("AddFileSet")) as (process, pause):
        with FileSets(connection) as filesets:
            fast = filesets.make(repos["masks"].requests([PutFile("/fast", b"fast")]))
            CommitWriter(connection, "masks", longest=0.1).make(lambda _: {"masks": fast})
        assert paths(repos) == {"images": {"/old"}, "masks": {"/old", "/fast"}}
        pause.ended.set()
        assert process.wait(60) == 0
    assert paths(repos) == {"images": {"/old", "/new"}, "masks": {"/old", "/fast", "/new"}}


def test_a_repo_that_does_not_exist_is_named(connection: Connection, repos: dict[str, Repository]) -> None:
    with pytest.raises(LookalikeError, match="the repo nosuch does not exist"):
        write_set(connection, {"images": [PutFile("/new", b"")], "nosuch": [PutFile("/new", b"")]})
    assert paths(repos) == both("/old")
