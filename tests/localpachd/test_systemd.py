"""The server under systemd: what it tells through the socket, and the unit that it prints."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from python_pachyderm.proto.v2.pps import pps_pb2

from localpachd import systemd
from localpachd.systemd import SystemdNotifier
from tests import servers
from tests.servers import StartPachd, start


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket of a manager such as systemd."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(60)
        yield receiver


def told(manager: socket.socket) -> list[str]:
    return manager.recv(4096).decode().splitlines()


def test_the_manager_is_told_of_start_life_and_stop(
    start_pachd: StartPachd, tmp_path: Path, manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", "200000")
    server = start_pachd(tmp_path / "root")
    assert told(manager) == ["READY=1", f"STATUS=listening on {server.address}"]
    assert server.client().health_check().status == 1
    assert told(manager) == ["WATCHDOG=1"]
    assert told(manager) == ["WATCHDOG=1"]
    server.process.send_signal(signal.SIGTERM)
    assert next(each for each in iter(lambda: told(manager), []) if each != ["WATCHDOG=1"]) == ["STOPPING=1"]
    assert server.process.wait(timeout=30) == 0


def test_a_server_that_cannot_read_is_silent(tmp_path: Path, manager: socket.socket) -> None:
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "1000", "WATCHDOG_PID": str(os.getpid())}
    tried = threading.Semaphore(0)

    def fail() -> None:
        tried.release()
        raise OSError("the disk fails")

    notifier = SystemdNotifier(environment)
    notifier.ready("up", fail)
    assert all(tried.acquire(timeout=30) for _ in range(3))
    notifier.stopping()
    assert told(manager) == ["READY=1", "STATUS=up"]
    assert told(manager) == ["STOPPING=1"]


def test_the_signs_of_life_of_another_process_are_not_sent(tmp_path: Path, manager: socket.socket) -> None:
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}
    SystemdNotifier(environment).ready("up", lambda: pytest.fail("it was asked"))
    assert told(manager) == ["READY=1", "STATUS=up"]


def test_an_abstract_address_and_one_that_is_gone(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        name = f"localpachd-{os.getpid()}"
        receiver.bind(f"\0{name}")
        receiver.settimeout(60)
        SystemdNotifier({"NOTIFY_SOCKET": f"@{name}"}).stopping()
        assert told(receiver) == ["STOPPING=1"]
    SystemdNotifier({"NOTIFY_SOCKET": str(tmp_path / "gone")}).stopping()
    SystemdNotifier({}).stopping()


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv(1) of util-linux is not here")
def test_workers_have_their_pfs_without_new_privileges(tmp_path: Path) -> None:
    """As NoNewPrivileges of the unit has it."""
    ordinary, within = start(tmp_path / "ordinary"), start(tmp_path / "root", within=("setpriv", "--no-new-privs"))
    try:
        outcomes = []
        for server in (ordinary, within):
            client = server.client()
            client.create_repo("in")
            client.put_file_bytes(("in", "master"), "/file", b"content")
            client.create_pipeline(
                "copy",
                transform=pps_pb2.Transform(cmd=["sh"], stdin=["cp /pfs/in/file /pfs/out/"]),
                input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="in", glob="/")),
            )
            (job,) = client.list_job("copy")
            outcomes.append(next(client.inspect_job(job.job.id, "copy", wait=True)).state)
        assert outcomes[0] == outcomes[1]
    finally:
        ordinary.stop()
        within.stop()


def printed(*options: str) -> str:
    done = servers.run("unit", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_unit_starts_the_server_with_the_options(tmp_path: Path) -> None:
    root = tmp_path / "a 100% root"
    text = printed("--root", str(root), "--retention", "90", "--quota", "50G")
    (line,) = [each for each in text.splitlines() if each.startswith("ExecStart=")]
    named = str(root).replace("%", "%%")
    assert line == f'ExecStart={sys.executable} -P -m localpachd --root "{named}" --retention 90 --quota 50G'
    assert f'RequiresMountsFor="{named}"\n' in text
    assert not root.exists()


def test_options_that_are_not_valid_make_no_unit(tmp_path: Path) -> None:
    tried = servers.run("unit", "--root", tmp_path / "root", "--quota", "much")
    assert tried.returncode == 2
    assert tried.stdout == ""


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here: Debian's systemd")
def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path) -> None:
    file = tmp_path / "localpachd.service"
    root = tmp_path / "a 100% $root"
    file.write_text(systemd.unit(root, ["--root", str(root)]))
    tried = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (tried.returncode, tried.stderr) == (0, "")
