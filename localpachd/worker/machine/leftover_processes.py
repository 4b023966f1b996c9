"""Processes of user code that outlive the one that was started, where no process number space ends them: a mark in
their environment, which descendants inherit, tells them. Starts nothing.

A mark begins with the name of its server's family, so that a server finds what the one before it on the same root left
when it was killed. Code that removes the mark from the environment of a daemon on purpose is not found.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from uuid import uuid4

VARIABLE = "LOCALPACHD_PROCESS"
"""The variable that holds the mark."""

_SETTLE = 1.0


def family(scratch: Path) -> str:
    """The name of all servers that use, one after the other, a scratch directory."""
    return blake2b(os.fsencode(scratch.resolve()), digest_size=8).hexdigest()


def new_mark(of_family: str) -> str:
    """The mark of one process and its descendants."""
    return f"{of_family}.{uuid4().hex}"


def kill_group(group: int, mark: str) -> None:
    """Kills the rest of a process group, and daemons that left it, and waits a moment until they are gone."""
    wanted = f"{VARIABLE}={mark}".encode()
    _kill(lambda its_group, environment: its_group == group or wanted in environment)


def kill_family(name: str) -> int:
    """Kills what earlier servers of a family left running, and waits a moment until it is gone; returns how many
    processes that were."""
    beginning = f"{VARIABLE}={name}.".encode()
    return _kill(lambda _, environment: any(each.startswith(beginning) for each in environment))


def _kill(wanted: Callable[[int, list[bytes]], bool]) -> int:
    limit = time.monotonic() + _SETTLE
    killed = set[int]()
    while found := set(_kill_once(wanted)):
        killed |= found
        if time.monotonic() > limit:
            break
        time.sleep(0.001)
    return len(killed)


def _kill_once(wanted: Callable[[int, list[bytes]], bool]) -> Iterator[int]:
    """Kills the processes that are wanted, and yields their numbers; not zombies, which may stay for ever."""
    for process in Path("/proc").glob("[0-9]*"):
        number = int(process.name)
        if number == os.getpid():
            continue
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(number)  # before it is looked at: the number may be another's by now
            try:
                state, _, group, *_ = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
                if state not in "ZX" and wanted(int(group), (process / "environ").read_bytes().split(b"\0")):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    yield number
            finally:
                os.close(handle)
