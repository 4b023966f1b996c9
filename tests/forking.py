"""Servers forked from a process that has imported localpachd's program, which takes a tenth of the processor time of
another start, and other programs in the same way. What a program sees is what it would see otherwise: its arguments,
variables, directory, and streams.

    python -m tests.forking PROGRAM FD    # serves the requests that come through the socket FD
"""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

PROGRAM = "localpachd.program"
_ROOT = Path(__file__).parent.parent
_LONGEST = 100_000  # bytes of arguments and variables
_STATUS = struct.Struct("=i")


class Forked:
    """A process as subprocess.Popen shows one: its number, its output, and its end. Its parent is another process."""

    def __init__(self, pid: int, stdout: IO[str], status: int) -> None:
        self.pid = pid
        self.stdout: IO[str] | None = stdout
        self.returncode: int | None = None
        self._status = status
        self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """The exit status as subprocess gives it, None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The same, once it has ended. Raises TimeoutExpired after so many seconds."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(PROGRAM, timeout or 0)
            (self.returncode,) = _STATUS.unpack(os.read(self._status, _STATUS.size))
            os.close(self._status)
            os.close(self._handle)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal, if it has not ended."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self.send_signal(signal.SIGKILL)


class _Origin:
    """The process that all of a program are forked from. It ends with this one, and they with it."""

    def __init__(self, program: str) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.forking", program, str(theirs.fileno())],
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()

    def start(self, arguments: Sequence[str], stderr: int) -> Forked:
        output, stdout = os.pipe()
        status, ended = os.pipe()
        request = {"arguments": list(arguments), "variables": dict(os.environ), "directory": str(Path.cwd())}
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(request).encode()], [stdout, stderr, ended])
            (pid,) = _STATUS.unpack(self._socket.recv(_STATUS.size))
        os.close(stdout)
        os.close(ended)
        return Forked(pid, os.fdopen(output), status)


_origins: dict[str, _Origin] = {}


def start(arguments: Sequence[str], stderr: int, program: str = PROGRAM) -> Forked:
    """Starts a program with these arguments, this process's variables and directory, and a pipe as its stdout."""
    if program not in _origins:
        _origins[program] = _Origin(program)
    return _origins[program].start(arguments, stderr)


def run(arguments: Sequence[str], program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    """Runs a program with these arguments until it ends by itself."""
    with tempfile.TemporaryFile("w+") as stderr:
        process = start(arguments, stderr.fileno(), program)
        assert process.stdout is not None
        with process.stdout as stdout:
            said = stdout.read()
        status = process.wait(60)
        stderr.seek(0)
        return subprocess.CompletedProcess(list(arguments), status, said, stderr.read())


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
        message, fds, _, _ = socket.recv_fds(requests, _LONGEST, 3)
        if not message:
            for pid in running:
                os.kill(pid, signal.SIGKILL)
            os._exit(0)
        stdout, stderr, ended = fds
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            os.dup2(stdout, 1)
            os.dup2(stderr, 2)
            os.closerange(3, 1024)
            return _become(**json.loads(message))
        running[pid] = ended
        os.close(stdout)
        os.close(stderr)
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


def _become(arguments: list[str], variables: dict[str, str], directory: str) -> None:
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(directory)
    sys.argv[1:] = arguments


def main() -> int:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGCHLD)}
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tests end it
    gc.disable()
    program = importlib.import_module(sys.argv[1])
    gc.freeze()
    gc.enable()
    _serve(socket.socket(fileno=int(sys.argv[2])))
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return int(program.main())


if __name__ == "__main__":
    sys.exit(main())
