"""Daemons of user code on a machine without namespaces: they end with their datum, and with their server or at its next
start. Those of other servers are left alone."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from python_pachyderm.proto.v2.pps import pps_pb2

from localpachd.worker.machine import leftover_processes
from tests import servers
from tests.forking import readable
from tests.servers import Localpachd

_PROGRAMS = ("sh", "cat", "setsid", "setpriv", "env", "sleep", "taskset")


@pytest.fixture
def without_namespaces(tmp_path: Path) -> tuple[str, ...]:
    """A command that runs another one where unshare(1) is missing."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in _PROGRAMS:
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    return ("env", f"PATH={programs}")


@pytest.fixture
def started() -> Iterator[list[Localpachd]]:
    """Servers to be killed after the test."""
    made: list[Localpachd] = []
    yield made
    for each in made:
        each.kill()


def ended(process: int, seconds: float) -> bool:
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return readable(handle, seconds)
    finally:
        os.close(handle)


def daemon(tmp_path: Path, then: str) -> list[str]:
    """A script that leaves a daemon, which has let go of everything, and tells its number; `then` comes after that."""
    inner = f"exec < /dev/null > /dev/null 2>&1; cd /; echo $$ > {tmp_path}/number; sleep 55; :"
    return [f"(setsid sh -c '{inner}' &)", f"while ! test -s {tmp_path}/number; do :; done", then]


def pipeline(server: Localpachd, script: list[str]) -> None:
    client = server.client()
    client.create_repo("in")
    client.put_file_bytes(("in", "master"), "/file", b"content")
    client.create_pipeline(
        "leave",
        pps_pb2.Transform(cmd=["sh"], stdin=script),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="in", glob="/*")),
    )


def test_they_end_with_their_datum(
    tmp_path: Path, without_namespaces: tuple[str, ...], started: list[Localpachd]
) -> None:
    started.append(servers.start(tmp_path / "root", within=without_namespaces))
    pipeline(started[0], daemon(tmp_path, "true"))
    client = started[0].client()
    (job,) = client.inspect_job(next(iter(client.list_job("leave"))).job.id, "leave", wait=True)
    assert job.state == pps_pb2.JOB_SUCCESS, job.reason
    assert ended(int((tmp_path / "number").read_text()), 0)


def test_they_end_when_the_pipeline_is_deleted(
    tmp_path: Path, without_namespaces: tuple[str, ...], started: list[Localpachd]
) -> None:
    started.append(servers.start(tmp_path / "root", within=without_namespaces))
    pipeline(started[0], daemon(tmp_path, "echo left; sleep 55"))
    client = started[0].client()
    job = next(iter(client.list_job("leave"))).job.id
    assert any(line.message.strip() == "left" for line in client.get_job_logs("leave", job, follow=True))
    client.delete_pipeline("leave")
    assert ended(int((tmp_path / "number").read_text()), 30)


def test_the_next_server_ends_those_of_one_that_was_killed(
    tmp_path: Path, without_namespaces: tuple[str, ...], started: list[Localpachd]
) -> None:
    started.append(servers.start(tmp_path / "root", within=without_namespaces))
    pipeline(started[0], daemon(tmp_path, "echo left; sleep 55"))
    client = started[0].client()
    job = next(iter(client.list_job("leave"))).job.id
    assert any(line.message.strip() == "left" for line in client.get_job_logs("leave", job, follow=True))
    number = int((tmp_path / "number").read_text())
    with contextlib.ExitStack() as held:
        of_another = {
            leftover_processes.VARIABLE: leftover_processes.new_mark(leftover_processes.family(tmp_path / "other"))
        }
        other = subprocess.Popen(["sleep", "55"], env={**os.environ, **of_another})
        held.callback(other.wait)
        held.callback(other.kill)
        started[0].kill()
        assert not ended(number, 0)
        (tmp_path / "number").unlink()
        started.append(servers.start(tmp_path / "root", within=without_namespaces))
        assert ended(number, 0)
        assert other.poll() is None
    assert "processes that user code of the last run had left running" in (tmp_path / "root.log").read_text()
