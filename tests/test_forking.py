"""Servers and commands that are forked: they see what a program that is started would see, and end as it would."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forking
from tests.command import Command
from tests.conditions import until
from tests.forking import Forked
from tests.servers import AS_PROGRAM, StartPachd

STARTS = """
import os, subprocess, sys, time
from tests import forking
server = forking.start(["--root", sys.argv[1], "--port", "0"], 2)
print(server.stdout.readline(), end="")
print(server.pid, flush=True)
"""


def seen(pid: int) -> dict[str, object]:
    """What a process has of its parent."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    masks = {line.partition(":")[0]: line.partition(":")[2].strip() for line in status}
    return {
        "directory": Path(f"/proc/{pid}/cwd").readlink(),
        **{name: masks[name] for name in ("SigBlk", "SigIgn", "SigCgt", "Umask", "Uid")},
    }


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_forked_server_is_that_of_the_program(start_pachd: StartPachd, tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "one").mkdir()
    program, forked = start_pachd(tmp_path / "one" / "root", within=AS_PROGRAM), start_pachd(tmp_path / "root")
    assert isinstance(forked.process, Forked) and not isinstance(program.process, Forked)
    assert forked.process.poll() is None
    assert seen(forked.process.pid) == seen(program.process.pid)
    for server in (program, forked):
        server.process.send_signal(how)
    assert [server.process.wait(timeout=30) for server in (program, forked)] == [-9 if how == signal.SIGKILL else 0] * 2
    assert [(tmp_path / log).read_text() for log in ("one/root.log", "root.log")] == ["", ""]


def test_a_server_that_does_not_start_says_why(start_pachd: StartPachd, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"(?s)did not start: ''\n.*unrecognized arguments: --no-such"):
        start_pachd(tmp_path / "root", "--no-such")


def test_variables_and_the_directory_are_those_of_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCALPACHD_ROOT", "x")
    with (tmp_path / "log").open("w") as log:
        server = forking.start(["--root", "here", "--port", "0"], log.fileno())
    assert server.stdout is not None and "listening" in server.stdout.readline()
    assert (tmp_path / "here" / "pachd.sqlite").exists()
    with pytest.raises(subprocess.TimeoutExpired):
        server.wait(0.01)
    server.kill()
    assert server.wait(10) == -9
    server.kill()  # which does nothing


def test_servers_end_with_the_tests(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTS, tmp_path / "root"], capture_output=True, text=True, timeout=60, check=True
    )
    line, pid = done.stdout.splitlines()
    assert line.startswith("localpachd: listening on ")
    cmdline = Path(f"/proc/{pid}/cmdline")
    until(lambda: not cmdline.exists() or not cmdline.read_bytes())


@pytest.mark.parametrize("words", [["status"], ["query", "--nothing"]])
def test_a_forked_command_is_that_of_the_program(tmp_path: Path, words: list[str]) -> None:
    command = Command(tmp_path, {"PACH_CONFIG": str(tmp_path / "none"), "COLUMNS": "70"})
    forked, program = command.start(*words), command.as_process.start(*words)
    assert isinstance(forked, Forked) and not isinstance(program, Forked)
    assert (forked.communicate(), forked.returncode) == (program.communicate(), program.returncode)
    assert forked.returncode != 0


def test_a_forked_command_starts_with_its_own_search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import atexit; atexit.register(print, 'customised')\n")
    command = Command(tmp_path, {"PACH_CONFIG": str(tmp_path / "none")})
    assert "customised" not in command.start("--version").communicate()[0]
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "customised" in command.start("--version").communicate()[0]
    monkeypatch.undo()
    assert "customised" not in command.start("--version").communicate()[0]
