"""Servers forked from a process that has imported localpachd's program, which takes a tenth of the processor time of
another start, and other programs in the same way. What a program sees is what it would see otherwise: its arguments,
variables, directory, and streams.

    python -m tests.forking PROGRAM FD    # serves the requests that come through the socket FD
"""

import contextlib
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PROGRAM = "localpachd.program"
_PATHS = "PYTHONPATH"
_ROOT = Path(__file__).parent.parent
_LONGEST = 100_000  # bytes of arguments and variables
_STATUS = struct.Struct("=i")


class Forked(subprocess.Popen[str]):
    """A process as subprocess gives it, forked from one that has imported its program. Its parent is that process, so
    Python's own way to start one and to wait for it is replaced."""

    _program, _python = PROGRAM, sys.executable

    def __init__(
        self, arguments: Sequence[str], program: str = PROGRAM, python: Path | None = None, **options: Any
    ) -> None:
        """python: the program that starts what the process starts with its own Python. options: of Popen, for the
        streams, the directory and the variables."""
        self._program, self._python = program, str(python or sys.executable)
        super().__init__(arguments, encoding="utf-8", **options)

    def _execute_child(self, arguments: Sequence[str], *given: Any) -> None:
        directory, variables, ends = given[4], given[5], given[9:15]
        stdin, _, _, stdout, _, stderr = ends
        streams = [own if each == -1 else each for own, each in enumerate((stdin, stdout, stderr))]
        seen = os.environ if variables is None else variables
        paths = seen.get(_PATHS, "")
        if (self._program, paths) not in _origins:
            _origins[self._program, paths] = _Origin(self._program, paths)
        origin = _origins[self._program, paths]
        self.pid, self._status = origin.start(arguments, streams, directory, seen, self._python)
        self._child_created = True
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            if not readable(self._status, timeout):
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            (self.returncode,) = _STATUS.unpack(os.read(self._status, _STATUS.size))
            os.close(self._status)
        return self.returncode

    def _internal_poll(self, **_: Any) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._wait(0)
        return self.returncode


class _Origin:
    """The process that all of a program are forked from. It ends with this one, and they with it."""

    def __init__(self, program: str, paths: str) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.forking", program, str(theirs.fileno())],
            cwd=_ROOT,
            env={**os.environ, _PATHS: paths},
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()

    def start(
        self,
        arguments: Sequence[str],
        streams: Sequence[int],
        directory: Any,
        variables: Mapping[str, str],
        python: str,
    ) -> tuple[int, int]:
        """The number of the process, and the reading end of a pipe for its exit status."""
        status, ended = os.pipe()
        request = {
            "arguments": list(arguments),
            "variables": dict(variables),
            "directory": str(directory or Path.cwd()),
            "python": python,
        }
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(request).encode()], [*streams, ended])
            (pid,) = _STATUS.unpack(self._socket.recv(_STATUS.size))
        os.close(ended)
        return pid, status


_origins: dict[tuple[str, str], _Origin] = {}
"""By program and PYTHONPATH, which decides what a Python imports as it starts, long before it is forked."""


def start(arguments: Sequence[str], stderr: int, program: str = PROGRAM, python: Path | None = None) -> Forked:
    """Starts a program with these arguments, this process's variables and directory, and a pipe as its stdout."""
    return Forked(arguments, program, python, stdout=subprocess.PIPE, stderr=stderr)


def readable(source: int, seconds: float | None) -> bool:
    """Whether there is something to read within some seconds, None for any number. select() knows no file above
    1,023."""
    waiting = select.poll()
    waiting.register(source, select.POLLIN)
    return bool(waiting.poll(None if seconds is None else 1000 * seconds))


def run(arguments: Sequence[str], program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    """Runs a program with these arguments until it ends by itself."""
    with Forked(arguments, program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        said, complained = process.communicate(timeout=60)
    return subprocess.CompletedProcess(list(arguments), process.returncode, said, complained)


def _serve(requests: socket.socket) -> None:
    """Forks a process for each request and tells its end; returns in these processes, not in this one."""
    running: dict[int, int] = {}
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([requests, woken], [], [])
        if woken in ready:
            woken.recv(4096)
            _tell(running)
        if requests not in ready:
            continue
        message, fds, _, _ = socket.recv_fds(requests, _LONGEST, 4)
        if not message:
            for pid in running:
                os.kill(pid, signal.SIGKILL)
            os._exit(0)
        *streams, ended = fds
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            for number, each in enumerate(streams):
                os.dup2(each, number)
            os.closerange(3, 1024)
            return become(**json.loads(message))
        running[pid] = ended
        for each in streams:
            os.close(each)
        requests.send(_STATUS.pack(pid))


def _tell(running: dict[int, int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        pipe = running.pop(pid)
        with contextlib.suppress(BrokenPipeError):
            os.write(pipe, _STATUS.pack(os.waitstatus_to_exitcode(status)))
        os.close(pipe)


def become(arguments: list[str], variables: dict[str, str], directory: str, python: str) -> None:
    """Gives this process what a program sees."""
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(directory)
    sys.argv[1:] = arguments
    sys.executable = python
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(number, "w", closefd=False), "utf-8", errors, write_through=True)  # as with -u
        for number, errors in ((1, "strict"), (2, "backslashreplace"))
    )


def main() -> int:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGCHLD)}
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tests end it
    gc.disable()
    program = importlib.import_module(sys.argv[1])
    if hasattr(program, "prepare"):
        program.prepare()
    gc.freeze()
    gc.enable()
    _serve(socket.socket(fileno=int(sys.argv[2])))
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return int(program.main())


if __name__ == "__main__":
    sys.exit(main())
