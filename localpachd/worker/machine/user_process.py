"""One process of user code: started in its own group, its output passed on, killed with all its descendants.

Knows neither datums nor the purpose of the process.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from localpachd.worker.commands import CommandProcess, LineSplitter
from localpachd.worker.machine import leftover_processes
from localpachd.worker.machine.worker_limits import BETWEEN_LOOKS, CommandLimits, memory_held

# The message of util-linux's unshare(1) when the process that it waits for is killed. It is not the user's output.
_NOT_THE_USERS = "unshare: sigprocmask unblock failed"

_BLOCK = 64 << 10
_AT_ONCE = 16 * _BLOCK


class UserProcess(CommandProcess):
    """A command on this machine. The same thread must start and stop it: the kernel ends the process when the thread
    that started it ends.

    `own_processes` says that the command is unshare(1) with a process number space of its own. `inherited` are file
    descriptors to pass on. `limits` are those of what it may hold and start. `family` is that of the server, see
    `leftover_processes`. Raises OSError or ValueError when it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        stdin: bytes,
        line: Callable[[str], None],
        notify: Callable[[], None],
        own_processes: bool = False,
        inherited: Sequence[int] = (),
        limits: CommandLimits | None = None,
        family: str = "",
    ) -> None:
        super().__init__(stdin, line, notify, lambda text: own_processes and text.startswith(_NOT_THE_USERS))
        self._limits = limits or CommandLimits()
        self._next_look = 0.0
        self._own_processes = own_processes
        self._lock = threading.Lock()
        self._reaped = False
        self._mark = leftover_processes.new_mark(family)
        self._process = subprocess.Popen(
            command,
            env={**env, leftover_processes.VARIABLE: self._mark},
            cwd="/",
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            process_group=0,
            pass_fds=inherited,
        )
        streams = (self._process.stdout, self._process.stderr)
        self._streams = {stream: self._output.stream() for stream in streams if stream is not None}
        for stream in self._streams:
            os.set_blocking(stream.fileno(), False)
        self._thread.name = f"process-{self._process.pid}"
        self._thread.start()

    @property
    def held(self) -> int:
        return memory_held(self._process.pid)

    def catch_up(self) -> None:
        with self._reading:
            if not self.ended:
                for stream, lines in self._streams.items():
                    _drain(stream, lines)
                self._output.release()

    def _kill(self) -> None:
        with self._lock:
            if self._reaped:
                return
            first = self._first_child() if self._own_processes else None
            with contextlib.suppress(ProcessLookupError):
                if first is None:
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    # When process 1 of a number space dies, so do all others, and only then does unshare return.
                    os.kill(first, signal.SIGKILL)

    def _first_child(self) -> int | None:
        pid = self._process.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return None
        return int(children[0]) if children else None

    def _abandon(self) -> int:
        self._kill()
        return self._process.wait()

    def _close(self) -> None:
        for stream in (self._process.stdin, *self._streams):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _converse(self) -> int:
        process = self._process
        pidfd = os.pidfd_open(process.pid)
        with selectors.DefaultSelector() as selector:
            for stream, lines in self._streams.items():
                selector.register(stream, selectors.EVENT_READ, lines)
            if process.stdin is not None:
                os.set_blocking(process.stdin.fileno(), False)
                selector.register(process.stdin, selectors.EVENT_WRITE)
            selector.register(pidfd, selectors.EVENT_READ)
            while not self._dead(selector, pidfd):
                pass
        os.close(pidfd)
        self._reap()
        self.catch_up()
        return process.wait()

    def _dead(self, selector: selectors.BaseSelector, pidfd: int) -> bool:
        """Reads and writes once, as far as the process's pipes are ready; True when the process has ended."""
        for key, _ in selector.select(BETWEEN_LOOKS):
            if key.fd == pidfd:
                return True
            if key.fileobj is self._process.stdin:
                self._write(selector)
            else:
                with self._reading:
                    if _read(key.fd, key.data) == 0:
                        selector.unregister(key.fileobj)
        if not self.refusal:
            self._look()
        return False

    def _look(self) -> None:
        """Ends the process if it exceeds its limits. A busy one is looked at no more often than an idle one."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + BETWEEN_LOOKS
        self.refusal = self._limits.excess(self._process.pid)
        if self.refusal:
            self._kill()

    def _write(self, selector: selectors.BaseSelector) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            self._unwritten = self._unwritten[os.write(stdin.fileno(), self._unwritten[:_BLOCK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # a command need not read its stdin
            self._unwritten = self._unwritten[:0]
        if not self._unwritten:
            selector.unregister(stdin)
            stdin.close()

    def _reap(self) -> None:
        """Kills the rest of the group before the number of its dead leader can be reused."""
        with self._lock:
            self._reaped = True
            group = self._process.pid
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
            self._process.wait()
        if not self._own_processes:
            leftover_processes.kill_group(group, self._mark)


def _read(stream: int, lines: LineSplitter) -> int | None:
    """Reads once and passes the data on: the number of bytes, 0 at the stream's end, None when nothing is there yet."""
    try:
        data = os.read(stream, _BLOCK)
    except BlockingIOError:
        return None
    lines.feed(data)
    return len(data)


def _drain(stream: IO[bytes], lines: LineSplitter) -> None:
    """Reads a pipe until it is empty, or for so long if it is never empty."""
    taken = 0
    while taken < _AT_ONCE and (size := _read(stream.fileno(), lines)):
        taken += size
