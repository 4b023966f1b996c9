"""The graph of the pipelines as people see it: drawn once, and kept live."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from tests.command import Command, next_line
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.stand_ins import deploy_specs, shell_spec, wait_for

pytestmark = pytest.mark.late_alone


@pytest.fixture
def gate(as_user: Connection, tmp_path: Path) -> Path:
    """A project with `first`, and `second` behind it, whose jobs wait for this file, and fail if it has content."""
    gate = tmp_path / "gate"
    specs = []
    for name, repo in (("first", "queries"), ("second", "first")):
        script = f'{wait_for(gate)}test ! -s "{gate}"\ntouch "${{LOCALPACHD_PFS:-/pfs}}/out/x"'
        leaf = {"pfs": {"name": "in", "repo": repo, "glob": "/*", "lazy": True}}
        specs.append(shell_spec(name, repo, script, input={"cross": [leaf]}, datum_tries=1))
    deploy_specs(as_user, *specs)
    return gate


def put(connection: Connection) -> str:
    return Repository(connection, "queries").write([PutFile("/a", b"a")])


def test_the_graph_is_shown_or_written(
    as_user: Connection, gate: Path, command: Command, wait_for_jobs: WaitForJobs
) -> None:
    gate.touch()
    wait_for_jobs(put(as_user))
    lines = command.says("status", "--graph").splitlines()
    assert lines[0].split() == ["name", "state", "done", "skipped", "failed", "total", "time", "GPUs"]
    rows = {line.split()[1]: line.split()[2:] for line in lines[1:] if "=" not in line}
    assert [*rows] == ["queries", "first", "second"]
    assert (rows["queries"], rows["second"][:5]) == (["1", "byte"], ["success", "1", "0", "0", "1"])
    assert any(line.endswith("= first (lazy)") for line in lines)
    assert command.says("status", "--graph", "svg", "-o", "g.svg") == "wrote g.svg\n"
    assert "second" in {each.text for each in ElementTree.parse(command.directory / "g.svg").iter()}
    assert command.says("status", "--graph", "mermaid").startswith("flowchart TD\n")
    assert "●" in (command.says("status", "--graph", "-o", "g.txt"), (command.directory / "g.txt").read_text())[1]
    told = json.loads(command.says("status", "--graph", "--json"))
    assert [node["name"] for node in told["nodes"]] == ["first", "queries", "second"]
    assert told["edges"][0] == {"source": "queries", "target": "first", "lazy": True, "combined": "cross"}
    assert command.run("status", "--graph", "png").returncode == 2
    assert command.run("status", "-o", "g.svg").returncode == 2


def test_without_pipelines_it_says_how_to_make_them(as_user: Connection, command: Command) -> None:
    assert command.says("status", "--graph") == "no pipelines yet: `lookalike deploy` creates them\n"
    assert command.says("watch", "--until-idle") == "no pipelines yet: `lookalike deploy` creates them\n"


@pytest.fixture
def watching(gate: Path, as_user: Connection, command: Command) -> "Iterator[subprocess.Popen[str]]":
    """A watch that has shown both pipelines."""
    process = command.start("watch", "--interval", "0.1", interruptible=True)
    next_line(process, "first: ")
    next_line(process, "second: ")
    yield process
    process.kill()
    process.communicate()


def test_a_watch_tells_each_change_until_ctrl_c(
    watching: "subprocess.Popen[str]", as_user: Connection, gate: Path
) -> None:
    commit = put(as_user)
    next_line(watching, "first: running, 1 datum (commit ")
    gate.touch()
    assert next_line(watching, "second: success") == f"second: success, 1 of 1 datum (commit {commit[:12]})"
    as_user.client.delete_pipeline("second", project_name=as_user.project)
    next_line(watching, "second: deleted")
    watching.send_signal(signal.SIGINT)
    _, complained = watching.communicate(timeout=60)
    assert (watching.returncode, complained) == (130, "lookalike: no longer watching, but the jobs continue\n")


def test_a_watch_until_idle_ends_with_the_jobs(as_user: Connection, gate: Path, command: Command) -> None:
    gate.write_text("fail")
    put(as_user)
    failed = command.run("watch", "--until-idle", "--interval", "0.1")
    assert failed.returncode == 1
    assert "first: failure, 1 of 1 datum, 1 failed: datum " in failed.stdout
    assert failed.stderr == "lookalike: first, second did not succeed: see `lookalike status` for the reasons\n"
    gate.unlink()
    gate.touch()
    Repository(as_user, "queries").write([PutFile("/a", b"another")])
    assert "second: success" in command.says("watch", "--until-idle", "--interval", "0.1")


def test_on_a_terminal_the_graph_is_drawn_again(as_user: Connection, gate: Path, command: Command) -> None:
    ours, theirs = pty.openpty()
    command.environment |= {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    process = command.start("watch", "--interval", "0.1", stdout=theirs, interruptible=True)
    os.close(theirs)
    with closing(os.fdopen(ours, "rb", buffering=0)) as screen:
        until(screen.fileno(), b"second")
        put(as_user)
        until(screen.fileno(), b"running")
        gate.touch()
        until(screen.fileno(), b"success")
        until(screen.fileno(), b"success")
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.read() == "lookalike: no longer watching, but the jobs continue\n"
        assert process.wait() == 130


def until(terminal: int, words: bytes) -> None:
    """Reads what the terminal shows up to these words."""
    read = b""
    while words not in read:
        read += os.read(terminal, 1)
