"""One process of user code: started in its own group, its output passed on, killed with all its descendants.

Knows neither datums nor what the process is for.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO
from uuid import uuid4

from localpachd.worker.lines import Lines, Speech

MARK = "LOCALPACHD_PROCESS"
"""The variable by which descendants of a process are known."""

# What unshare(1) of util-linux says when the process that it waits for is killed. It is none of the user's words.
_NOT_THE_USERS = "unshare: sigprocmask unblock failed"

_BLOCK = 64 << 10
_AT_ONCE = 16 * _BLOCK
_POLL = 0.05
_SETTLE = 1.0


class UserProcess:
    """A `commands.Process` of this machine. Must be started and stopped by one and the same thread: the kernel ends
    the process when the thread that started it ends.

    `line` is called for each line of stdout and stderr, from another thread; `notify` once, when the process has ended.
    `own_processes` says that the command is unshare(1) with a process number space of its own. `inherited` are file
    descriptors to pass on. Raises OSError or ValueError when it cannot be started.
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
    ) -> None:
        self._speech = Speech(line, lambda text: own_processes and text.startswith(_NOT_THE_USERS))
        self._notify = notify
        self._own_processes = own_processes
        self._lock = threading.Lock()
        self._reaped = False
        self._reading = threading.Lock()
        self._unwritten = memoryview(stdin)
        self.returncode: int | None = None
        self.refusal = ""
        # Whatever descends from the process has this in its environment, unless it takes pains to lose it.
        self._mark = f"{MARK}={uuid4().hex}"
        self._process = subprocess.Popen(
            command,
            env={**env, MARK: self._mark.partition("=")[2]},
            cwd="/",
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            process_group=0,
            pass_fds=inherited,
        )
        outputs = (self._process.stdout, self._process.stderr)
        self._outputs = {stream: self._speech.stream() for stream in outputs if stream is not None}
        for stream in self._outputs:
            os.set_blocking(stream.fileno(), False)
        self._thread = threading.Thread(target=self._attend, name=f"process-{self._process.pid}", daemon=True)
        self._thread.start()

    @property
    def last_line(self) -> str:
        """As `commands.Process` says."""
        return self._speech.last

    @property
    def ended(self) -> bool:
        """As `commands.Process` says."""
        return self.returncode is not None

    def catch_up(self) -> None:
        """As `commands.Process` says."""
        with self._reading:
            if not self.ended:
                for stream, lines in self._outputs.items():
                    _drain(stream, lines)

    def stop(self) -> None:
        """As `commands.Process` says."""
        self.catch_up()
        self._speech.mute()
        self._kill()
        self._thread.join()
        if self._speech.failure is not None:
            raise self._speech.failure

    def _kill(self) -> None:
        with self._lock:
            if self._reaped:
                return
            first = self._first_child() if self._own_processes else None
            with contextlib.suppress(ProcessLookupError):
                if first is None:
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    # With process 1 of a number space dies all of it, and unshare returns only when it has.
                    os.kill(first, signal.SIGKILL)

    def _first_child(self) -> int | None:
        pid = self._process.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return None
        return int(children[0]) if children else None

    def _attend(self) -> None:
        try:
            self._converse()
        except Exception as failure:  # no process may run on with nobody who reads what it says
            self._speech.failure = failure
            self._kill()
        self._finish(self._process.wait())

    def _finish(self, returncode: int) -> None:
        with self._reading:
            for lines in self._outputs.values():
                lines.finish()
            for stream in (self._process.stdin, *self._outputs):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            self.returncode = returncode
        self._notify()

    def _converse(self) -> None:
        process = self._process
        pidfd = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None
        with selectors.DefaultSelector() as selector:
            for stream, lines in self._outputs.items():
                selector.register(stream, selectors.EVENT_READ, lines)
            if process.stdin is not None:
                os.set_blocking(process.stdin.fileno(), False)
                selector.register(process.stdin, selectors.EVENT_WRITE)
            if pidfd is not None:
                selector.register(pidfd, selectors.EVENT_READ)
            while not self._dead(selector, pidfd):
                pass
        if pidfd is not None:
            os.close(pidfd)
        self._reap()
        with self._reading:
            for stream, lines in self._outputs.items():
                _drain(stream, lines)

    def _dead(self, selector: selectors.BaseSelector, pidfd: int | None) -> bool:
        """One round of whatever the process's pipes are ready for; True when it has ended."""
        for key, _ in selector.select(None if pidfd is not None else _POLL):
            if key.fd == pidfd:
                return True
            if key.fileobj is self._process.stdin:
                self._write(selector)
            else:
                with self._reading:
                    if _read(key.fd, key.data) == 0:
                        selector.unregister(key.fileobj)
        return pidfd is None and self._process.poll() is not None

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
        """Kills what is left of the group before the number of its dead leader can be given away."""
        with self._lock:
            self._reaped = True
            group = self._process.pid
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
            self._process.wait()
        if not self._own_processes:
            _hunt(group, self._mark)


def _read(stream: int, lines: Lines) -> int | None:
    """Passes on what one read gives: how many bytes, 0 at the stream's end, None when there is nothing now."""
    try:
        data = os.read(stream, _BLOCK)
    except BlockingIOError:
        return None
    lines.feed(data)
    return len(data)


def _drain(stream: IO[bytes], lines: Lines) -> None:
    """Reads what lies in a pipe, but not for ever what somebody goes on to write."""
    taken = 0
    while taken < _AT_ONCE and (size := _read(stream.fileno(), lines)):
        taken += size


def _hunt(group: int, mark: str) -> None:
    """Kills what is left of a process group, and daemons that left it, and waits until they are gone, within reason."""
    limit = time.monotonic() + _SETTLE
    while (found := list(_survivors(group, mark))) and time.monotonic() < limit:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def _survivors(group: int, mark: str) -> Iterator[int]:
    """The processes of a group or with a mark in their environment. Zombies, whom nobody may ever collect, are not."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, its_group, *_ = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if state in "ZX":
                continue
            if int(its_group) == group or mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                yield int(process.name)
