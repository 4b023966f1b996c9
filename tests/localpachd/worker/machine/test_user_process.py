"""Single processes: every way of starting one, and the end of all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from localpachd.worker.machine import namespaces
from localpachd.worker.machine.namespaces import Confinement
from localpachd.worker.machine.user_process import UserProcess


def test_a_message_of_unshare_is_not_the_commands_output() -> None:
    said: list[str] = []
    ended = threading.Event()
    script = "echo 'unshare: sigprocmask unblock failed: Invalid argument' >&2; echo mine"
    process = UserProcess(["sh", "-c", script], os.environ, b"", said.append, ended.set, own_processes=True)
    ended.wait(30)
    process.stop()
    assert said == ["mine"] == [process.last_line]


def _dies_with(pipe: int) -> None:
    """Returns when the last holder of a pipe's other end is gone."""
    assert os.read(pipe, 1) == b""
    os.close(pipe)


def _confinements() -> list[Confinement]:
    best = namespaces.detect(Path("/tmp"))
    found = [Confinement()]
    if best.mounts:
        found += [best, Confinement(best.flags, rebuild=True)]
        without = tuple(flag for flag in best.flags if flag not in ("-p", "-f", "--kill-child", "--mount-proc"))
        found.append(Confinement(without, best.rebuild))
        if os.geteuid() == 0:
            found += [Confinement(("-U", "-r", *flags), best.rebuild) for flags in (best.flags, without)]
    return found


CONFINEMENTS = pytest.mark.parametrize("confinement", _confinements(), ids=str)


@CONFINEMENTS
def test_every_way_of_starting_a_process_works(confinement: Confinement, tmp_path: Path) -> None:
    (tmp_path / "pfs").mkdir()
    (tmp_path / "root").mkdir()
    confinement.prepare(tmp_path / "root")
    said: list[str] = []
    ended = threading.Event()
    lifeline = os.pipe()
    script = (
        'pwd; echo "$1"; cat; ls /pfs/.. | grep -c usr; echo err >&2; touch '
        + confinement.shown(tmp_path / "pfs")
        + "/f"
    )
    command = confinement.command(
        ("sh", "-c", script, "sh", "a b'\"$c"), tmp_path / "pfs", "/usr", tmp_path / "root", (), lifeline[0]
    )
    if not confinement.mounts:
        command = [word.replace("/pfs/..", "/") for word in command]
    env = {"PATH": os.environ["PATH"]}
    process = UserProcess(
        command, env, b"given\n" * 3, said.append, ended.set, confinement.own_processes, (lifeline[0],)
    )
    ended.wait()
    process.stop()
    for end in lifeline:
        os.close(end)
    assert process.returncode == 0
    assert sorted(said) == sorted(["/usr", "a b'\"$c", "given", "given", "given", "1", "err"])
    assert (tmp_path / "pfs" / "f").exists()


@CONFINEMENTS
def test_stopping_kills_descendants(confinement: Confinement, tmp_path: Path) -> None:
    (tmp_path / "pfs").mkdir()
    (tmp_path / "root").mkdir()
    confinement.prepare(tmp_path / "root")
    lifeline, alive = os.pipe(), os.pipe()
    started, ended = threading.Event(), threading.Event()
    script = "(setsid sh -c 'sleep 50; :' &) ; sleep 50 & echo started; wait"
    command = confinement.command(("sh", "-c", script), tmp_path / "pfs", "/", tmp_path / "root", (), lifeline[0])
    process = UserProcess(
        command, os.environ, b"", lambda _: started.set(), ended.set, confinement.own_processes,
        (lifeline[0], alive[1]),
    )  # fmt: skip
    os.close(alive[1])
    started.wait()
    process.stop()
    assert ended.is_set()
    assert process.returncode not in (0, None)
    _dies_with(alive[0])
    for end in lifeline:
        os.close(end)


_SERVER = """
import os, sys, threading
from pathlib import Path
from localpachd.worker.machine.namespaces import Confinement
from localpachd.worker.machine.user_process import UserProcess
place, confinement, alive = Path(sys.argv[1]), eval(sys.argv[2]), int(sys.argv[3])
confinement.prepare(place / "root")
lifeline = os.pipe()
script = "sleep 50 & echo started; wait"
command = confinement.command(("sh", "-c", script), place / "pfs", "/", place / "root", (), lifeline[0])
def run():
    UserProcess(command, os.environ, b"", lambda _: print("ready", flush=True), lambda: None,
                confinement.own_processes, (lifeline[0], alive))
    os.close(alive)
    threading.Event().wait()
threading.Thread(target=run).start()
"""


@CONFINEMENTS
def test_nothing_outlives_a_killed_server(confinement: Confinement, tmp_path: Path) -> None:
    (tmp_path / "pfs").mkdir()
    (tmp_path / "root").mkdir()
    alive = os.pipe()
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(tmp_path), repr(confinement), str(alive[1])],
        stdout=subprocess.PIPE,
        pass_fds=(alive[1],),
    )
    os.close(alive[1])
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    server.send_signal(signal.SIGKILL)
    server.wait()
    server.stdout.close()
    _dies_with(alive[0])
