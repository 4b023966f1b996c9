"""The server as a program: its first line, its root directory, its end, and its state after a restart."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import python_pachyderm
from python_pachyderm.proto.v2.pps import pps_pb2

from localpachd import server
from localpachd.server_options import ServerOptions
from tests import servers
from tests.conditions import until
from tests.servers import AS_PROGRAM, StartPachd


def test_its_modules_start_no_threads() -> None:
    """Threads that are there before the allocator is set have heaps of their own."""
    program = "import os; from localpachd import program; print(len(os.listdir('/proc/self/task')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "1\n"


def test_the_first_line_has_the_address_and_sigterm_stops_the_server(start_pachd: StartPachd, tmp_path: Path) -> None:
    server = start_pachd(tmp_path / "root", within=AS_PROGRAM)
    version = server.client().get_remote_version()
    assert (version.major, version.minor, version.micro) == (2, 7, 8)
    assert server.client().health_check().status == 1
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=30) == 0
    assert (tmp_path / "root.log").read_text() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_start_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    token = tmp_path / "token"
    os.mkfifo(token)
    arguments = ["--root", str(tmp_path / "root"), "--port", "0", "--token-file", str(token)]
    process = subprocess.Popen([sys.executable, "-m", "localpachd", *arguments], stderr=subprocess.PIPE, text=True)
    with token.open("w"):  # once the server reads its token, which never comes
        process.send_signal(number)
        assert process.wait(timeout=10) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_two_servers_do_not_share_a_root(start_pachd: StartPachd, tmp_path: Path) -> None:
    server = start_pachd(tmp_path / "root")
    second = servers.run("--root", str(tmp_path / "root"), "--port", "0")
    assert second.returncode == 1
    assert second.stdout == ""
    assert second.stderr == (
        f"localpachd: {tmp_path / 'root'} is in use by another localpachd (process {server.process.pid}): "
        "stop it first, or use another --root\n"
    )


def test_a_taken_port_is_explained(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = servers.run("--root", str(tmp_path / "root"), "--port", str(taken.getsockname()[1]))
    assert refused.returncode == 1
    assert "localpachd: cannot listen on 127.0.0.1:" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--gpus", "some"], "the number of GPUs must be auto or a number"),
        (["--runner", "magic"], "invalid choice: 'magic'"),
        (["--log-days", "-1"], "-1 is not a whole number of 0 or more"),
        (["--port", "99999"], "99999 is not a valid port: use a number from 0 to 65535"),
        (["--port", "-1"], "-1 is not a valid port"),
        (["--root", ""], "the name of a directory is missing"),
        (["--root", __file__], "is not a directory"),
        (["--root", f"{__file__}/root"], "Not a directory"),
    ],
)
def test_bad_options_are_explained(tmp_path: Path, arguments: list[str], text: str) -> None:
    refused = servers.run("--root", str(tmp_path / "root"), "--port", "0", *arguments)
    assert refused.returncode != 0
    assert text in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_servers_identity_survives_a_restart(start_pachd: StartPachd, tmp_path: Path) -> None:
    first = start_pachd(tmp_path / "root")
    before = first.client().inspect_cluster()
    first.stop()
    after = start_pachd(tmp_path / "root").client().inspect_cluster()
    assert before == after
    assert before.id
    assert before.deployment_id
    assert before.version_warnings_ok


def test_deleted_data_is_removed_while_the_server_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_BETWEEN_CHORES", 0.01)
    with server.Server(ServerOptions(tmp_path, port=0, log_lines=1)) as running:
        client = python_pachyderm.Client(port=running.port)
        client.create_repo("in")
        client.put_file_bytes(("in", "master"), "/f", b"content")
        client.create_pipeline(
            "p",
            transform=pps_pb2.Transform(cmd=["sh"], stdin=["echo one", "echo two"]),
            input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="in", glob="/*")),
        )
        client.inspect_job(next(client.list_job("p")).job.id, "p", wait=True)
        with closing(sqlite3.connect(tmp_path / "pachd.sqlite")) as database:
            until(lambda: database.execute("SELECT COUNT(*) <= 1 FROM logs").fetchone()[0])
        client.delete_pipeline("p")
        client.delete_repo("in")
        with closing(sqlite3.connect(tmp_path / "pachd.sqlite")) as database:
            until(lambda: database.execute("SELECT COUNT(*) = 0 FROM layers").fetchone()[0])
