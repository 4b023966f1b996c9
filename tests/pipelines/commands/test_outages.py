"""Commands whose server is killed while they wait or read, and is started again on the same port and root."""

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import grpc
import pytest
from PIL import Image

from pipelines.client.commit_history import CommitHistory
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server import connection as server_connection
from pipelines.client.server.connection import Connection, ServerTarget, connect
from pipelines.errors import LookalikeError
from tests.command import Command
from tests.pipelines.stand_ins import RENDER, deploy_specs, shell_spec, wait_for
from tests.servers import OwnPort, StartPachd
from tests.stages.scenes import saved

LARGE = 64 << 20
"""Bytes, far more than lie in the buffers of a stream."""


class Server:
    """A localpachd that can be killed and started again, for commands in `command.directory`."""

    def __init__(self, start: StartPachd, root: Path, port: int) -> None:
        self._start, self._root, self._port = start, root, port
        self.start()
        self.address = self.running.address

    def start(self) -> None:
        """Starts it, again with everything that it held."""
        self.running = self._start(self._root, "--port", str(self._port))

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self.running.kill()

    def connection(self) -> Connection:
        """A new connection."""
        return connect(ServerTarget(self.address))


@pytest.fixture
def server(start_pachd: StartPachd, own_port: OwnPort, command: Command, tmp_path: Path) -> Server:
    """The server of the command."""
    made = Server(start_pachd, tmp_path / "root", own_port())
    command.environment["PACHD_ADDRESS"] = made.address
    return made


def render(server: Server, directory: Path, size: int = 4) -> None:
    """Deploys a `render` whose jobs wait for the file `gate`, and then make sheets with a grid of this size."""
    script = wait_for(directory / "gate") + RENDER.replace("echo grid", f"head -c {size} /dev/zero")
    deploy_specs(server.connection(), shell_spec("render", "queries", script))


def lines_of(process: "subprocess.Popen[str]") -> Iterator[str]:
    """The lines that a command has printed, each as soon as it is there."""
    assert process.stdout is not None
    for line in process.stdout:
        yield line.rstrip("\n")


def seen(lines: Iterator[str], part: str) -> str:
    """The next line with this part."""
    return next(line for line in lines if part in line)


def running(server: Server) -> bool:
    """Whether the job of `render` has started."""
    job = ProjectJobs(server.connection()).newest("render")
    return job is not None and job.state == "running"


@pytest.fixture(params=["query", pytest.param("import", marks=pytest.mark.only_in_all)])
def waiting(
    request: pytest.FixtureRequest, server: Server, command: Command, tmp_path: Path
) -> "Iterator[subprocess.Popen[str]]":
    """A command that waits for a running job."""
    (command.directory / "a").write_bytes(saved(Image.new("L", (8, 8))))
    if request.param == "import":
        client = server.connection().client
        for repo in ("images", "queries", "models"):
            client.create_repo(repo)
        command.says("query", "a", "--no-wait")
        command.says("export", "library.tar")
        for repo in ("images", "queries", "models"):
            client.delete_repo(repo)
    render(server, tmp_path)
    words = ["query", "-v", "a"] if request.param == "query" else ["import", "library.tar"]
    typed = command.start(*words, interruptible=True)
    seen(lines_of(typed), "put 1 file into queries" if request.param == "query" else "imported 1 commit")
    while not running(server):
        assert typed.poll() is None
    yield typed
    typed.kill()
    typed.communicate()


def test_a_command_that_waits_goes_on_after_a_restart(
    waiting: "subprocess.Popen[str]", server: Server, tmp_path: Path
) -> None:
    lines = lines_of(waiting)
    for _ in range(2):
        server.kill()
        line = seen(lines, " does not answer")
        assert re.fullmatch(
            rf"the library's server at {server.address} does not answer, trying again until \d\d:\d\d:\d\d", line
        )
        server.start()
        assert re.fullmatch(rf"the library's server at {server.address} answers again, at \d\d:\d\d:\d\d", next(lines))
    (tmp_path / "gate").touch()
    assert seen(lines, "render: success") == "render: success, 1 of 1 datum"
    _, complained = waiting.communicate(timeout=60)
    assert (waiting.returncode, complained) == (0, "")


def test_a_watch_of_the_pipelines_goes_on_after_a_restart(server: Server, command: Command, tmp_path: Path) -> None:
    render(server, tmp_path)
    typed = command.start("watch", "--interval", "0.1", interruptible=True)
    lines = lines_of(typed)
    seen(lines, "render: ")
    server.kill()
    seen(lines, " does not answer")
    server.start()
    seen(lines, " answers again")
    (command.directory / "a").write_bytes(saved(Image.new("L", (8, 8))))
    command.says("query", "a", "--no-wait")
    seen(lines, "render: running, 1 datum")
    (tmp_path / "gate").touch()
    seen(lines, "render: success, 1 of 1 datum")
    typed.kill()
    typed.communicate()


def test_ctrl_c_ends_the_wait_for_a_server(waiting: "subprocess.Popen[str]", server: Server) -> None:
    lines = lines_of(waiting)
    server.kill()
    seen(lines, " does not answer")
    waiting.send_signal(signal.SIGINT)
    assert not list(lines)
    _, complained = waiting.communicate(timeout=60)
    assert waiting.returncode == 130
    assert complained in (
        "lookalike: interrupted\n",
        "lookalike: no longer waiting, but the jobs continue: see `lookalike status`\n",
    )


def test_a_file_whose_stream_breaks_is_fetched_again(server: Server, command: Command, tmp_path: Path) -> None:
    render(server, tmp_path, LARGE)
    (tmp_path / "gate").touch()
    (command.directory / "a").write_bytes(saved(Image.new("L", (8, 8))))
    command.says("query", "a", "-o", "first")
    typed = command.start("results")
    part = command.directory / "results" / "a" / ".grid.png.new"
    while not part.exists() or not part.stat().st_size:
        assert typed.poll() is None
    typed.send_signal(signal.SIGSTOP)
    try:
        assert part.stat().st_size < LARGE - (16 << 20)
        server.kill()
    finally:
        typed.send_signal(signal.SIGCONT)
    lines = lines_of(typed)
    seen(lines, " does not answer")
    server.start()
    seen(lines, " answers again")
    _, complained = typed.communicate(timeout=60)
    assert (typed.returncode, complained) == (0, "")
    assert (command.directory / "results" / "a" / "grid.png").read_bytes() == bytes(LARGE)
    assert not part.exists()


def test_a_write_is_not_repeated(server: Server, command: Command) -> None:
    client = server.connection().client
    for repo in ("images", "queries", "models"):
        client.create_repo(repo)
    Repository(server.connection(), "images").write([PutFile("/a", bytes(3 << 20))])
    command.says("export", "library.tar")
    client.delete_repo("images")
    whole = (command.directory / "library.tar").read_bytes()
    typed = command.start("import", "-", stdin=subprocess.PIPE)
    assert typed.stdin is not None
    with contextlib.suppress(BrokenPipeError), os.fdopen(os.dup(typed.stdin.fileno()), "wb", buffering=0) as pipe:
        pipe.write(whole[: 2 << 20])  # more than a pipe holds
        server.kill()
        pipe.write(whole[2 << 20 :])
    said, complained = typed.communicate(timeout=60)
    assert typed.returncode == 1
    assert complained.startswith(f"lookalike: no Pachyderm answers at {server.address}: ")
    assert len(complained.splitlines()) == 1
    assert "trying again" not in said
    server.start()
    assert not CommitHistory(server.connection()).commits("images")


def test_a_lost_server_is_not_an_unreadable_file(server: Server) -> None:
    connection = server.connection()
    server.kill()
    for _ in range(20):  # the client raises one or the other
        with pytest.raises((grpc.RpcError, ConnectionError)):
            Repository(connection, "images").write([PutFile("/a", b"")])


@pytest.mark.parametrize("local", [True, False])
def test_a_server_that_stays_away_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch, *, local: bool) -> None:
    monkeypatch.setattr(server_connection, "LONGEST", timedelta(seconds=1))
    there = connect(ServerTarget(server.address, namespace="pach", local=local))
    told: list[str] = []
    connection = Connection(there.client, there.address, there.project, told.append)
    server.kill()
    with pytest.raises(LookalikeError) as raised:
        connection.retry(ProjectJobs(connection).pipelines)
    assert f" at {server.address}" in str(raised.value)
    assert ("`lookalike up`" in str(raised.value), "`kubectl get pods --namespace pach`" in str(raised.value)) == (
        local,
        not local,
    )
    assert len(told) > 1
    assert len(set(told)) == 1
