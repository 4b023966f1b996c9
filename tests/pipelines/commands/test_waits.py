"""Commands that wait for jobs, which wait themselves: for an older job, a stopped pipeline, an open commit, another
attempt; and the progress within a datum."""

import contextlib
import os
import pty
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.server.connection import Connection
from tests.command import Command, next_line
from tests.pipelines.stand_ins import RENDER, deploy_specs, shell_spec, wait_for
from tests.stages.scenes import saved

Render = Callable[..., Path]


@pytest.fixture
def render(as_user: Connection, tmp_path: Path) -> Render:
    """Deploys a `render` that runs commands, and waits for its gate, before it makes its sheets; returns the path of
    the gate."""
    gate = tmp_path / "gate"

    def make(before: str = "", **fields: Any) -> Path:
        script = before.format(gate=gate) + wait_for(gate) + RENDER
        deploy_specs(as_user, shell_spec("render", "queries", script, **fields))
        return gate

    return make


@pytest.fixture(autouse=True)
def pictures(command: Command) -> None:
    for name in "abc":
        (command.directory / name).write_bytes(saved(Image.new("L", (8, 8), ord(name))))


def ended(typed: "subprocess.Popen[str]") -> str:
    """The rest of the output of a command, which succeeds."""
    said, complained = typed.communicate(timeout=60)
    assert (typed.returncode, complained) == (0, ""), said
    return said


def test_a_job_behind_another(as_user: Connection, render: Render, command: Command) -> None:
    gate = render()
    assert "its jobs are running" in command.says("query", "a", "--no-wait")
    first = ProjectJobs(as_user).newest("render")
    assert first is not None
    typed = command.start("query", "-v", "b")
    line = next_line(typed, "waits behind")
    assert line.startswith(f"render: waits behind commit {first.id[:12]} (")
    assert "its jobs are running" in command.says("query", "c", "--no-wait")
    newest = ProjectJobs(as_user).newest("render")
    assert newest is not None
    superseded = f"waits, superseded by the newer commit {newest.id[:12]}, behind commit {first.id[:12]} ("
    assert next_line(typed, "superseded").startswith(f"render: {superseded}")
    gate.touch()
    # A late server counts the datum that it skips when the job ends.
    assert re.search("render: success, 1 of 2 datums computed, 1 unchanged\n", ended(typed))


def test_a_stopped_pipeline(as_user: Connection, render: Render, command: Command) -> None:
    gate = render()
    gate.touch()
    as_user.client.stop_pipeline("render", project_name=as_user.project)
    stopped = "render: is stopped: `pachctl start pipeline render` lets it continue"
    assert f"{stopped}\n" in command.run("query", "-v", "a").stdout
    assert f"{stopped}\n" in command.says("status")


def test_an_open_commit(as_user: Connection, render: Render, command: Command) -> None:
    def leaf(repo: str, glob: str) -> Any:
        return {"pfs": {"name": repo, "repo": repo, "branch": "master", "glob": glob}}

    gate = render(input={"cross": [leaf("queries", "/*"), leaf("models", "/")]})
    gate.touch()
    opened = as_user.client.start_commit("models", "master", project_name=as_user.project)
    typed = command.start("query", "-v", "a")
    waits = (
        f"waits for commit {opened.id[:12]} of models, which is open: its writer, or `pachctl finish commit "
        f"models@{opened.id}`, finishes it"
    )
    # The open commit has a job of its own, which comes first.
    assert re.fullmatch(
        rf"render: waits behind commit {opened.id[:12]} \((created|starting)\), which {waits}", next_line(typed, "open")
    )
    assert f"render: {waits}\n" in command.says("status")
    as_user.client.put_file_bytes(opened, "/model", b"")
    as_user.client.finish_commit(opened)
    assert "render: success, 1 of 1 datum\n" in ended(typed)


def test_a_worker_that_is_killed(render: Render, command: Command) -> None:
    gate = render("[ -e {gate}.first ] || {{ touch {gate}.first; kill -9 $$; }}\n")
    typed = command.start("query", "-v", "a")
    line = next_line(typed, "attempt")
    assert re.fullmatch(
        r"render: an attempt at /a failed after \d+ s: signal: killed \(the machine may lack memory\)", line
    )
    assert line in command.says("status")
    gate.touch()
    assert "render: success, 1 of 1 datum\n" in ended(typed)


def test_the_progress_within_a_datum(as_user: Connection, render: Render, command: Command) -> None:
    gate = render("echo '120 of 400 pictures'\n")
    here, there = pty.openpty()
    command.environment["TERM"] = "xterm"
    typed = command.start("query", "-v", "a", stdin=there, stdout=there, stderr=there)
    os.close(there)
    said = ""
    with contextlib.suppress(OSError), os.fdopen(here, "rb", buffering=0) as terminal:
        while piece := terminal.read(4096):
            said += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", piece.decode(errors="replace"))
            if "120 of 400" in said and "left" in said and not gate.exists():
                assert "render is at work: /a for " in (shown := command.says("status"))
                assert ", 120 of 400 pictures\n" in shown
                gate.touch()
    assert typed.wait(60) == 0
    assert re.search(r" 0/1 +0:00:\d\d /a for \d+ s, 120 of 400 pictures, about \d+ s left", said)
    assert re.search(r"^render +━+ 1/1 +0:00:\d\d success", said.replace("\r", "\n"), re.MULTILINE)
    assert "a: results/a/index.html" in said


def test_a_job_without_datums(render: Render, command: Command) -> None:
    def leaf(repo: str) -> Any:
        return {"pfs": {"name": repo, "repo": repo, "branch": "master", "glob": "/*"}}

    render(input={"cross": [leaf("queries"), leaf("images")]})
    assert "render: nothing to do\n" in command.run("query", "-v", "a").stdout
