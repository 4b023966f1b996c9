"""One command in a container: started beside process 1, its output passed on, killed with all that it started.

Knows neither datums nor the purpose of the command.
"""

import contextlib
import re
import select
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from localpachd.worker.commands import CommandProcess
from localpachd.worker.docker.container import Container
from localpachd.worker.docker.container_engine import ContainerEngine, EngineError

_BLOCK = 64 << 10
_AT_ONCE = 16 * _BLOCK
_HEADER = 8
_SILENCE = 0.002
_SHORTEST, _LONGEST = 0.005, 0.5
"""Seconds between two checks whether a command has ended, where its streams do not show it."""
_KILLED = 128 + 9
_QUOTED = 4 << 10

# Messages of the engine itself on a command's stream; the second kind is Podman's.
_FOREIGN = re.compile(r"OCI runtime exec failed: |Error: (?:(?:runc|crun): |(?:read|write) unixpacket )")
_PREFIX = re.compile(
    r"(?:Error: )?(?:OCI runtime exec failed: )?(?:(?:runc|crun): )?(?:exec failed: )?"
    r"(?:unable to start container process: )?"
)
_SUFFIX = re.compile(r": (?:unknown|OCI .*)$")
_MISSING = re.compile(r"executable file `(.*?)` not found")
_PROGRAM = re.compile(r'exec: "(.*?)": (?:stat .*: )?(no such file or directory|permission denied)')
_DIRECTORY = re.compile(r'chdir to cwd \("(.*?)"\)')


def readable(source: Any, seconds: float) -> bool:
    """Whether there is something to read within some seconds. select() knows no file above 1,023, and a server may have
    more open."""
    waiting = select.poll()
    waiting.register(source, select.POLLIN)
    return bool(waiting.poll(1000 * seconds))


class ContainerProcess(CommandProcess):
    """A command in a container: `command` is as for `POST /containers/{id}/exec`. Raises EngineError when the engine
    cannot start anything."""

    def __init__(
        self,
        engine: ContainerEngine,
        container: Container,
        command: Mapping[str, Any],
        stdin: bytes,
        line: Callable[[str], None],
        notify: Callable[[], None],
    ) -> None:
        super().__init__(stdin, line, notify, lambda text: _FOREIGN.match(text) is not None)
        self._engine = engine
        self._container = container
        self._streams = {1: self._output.stream(), 2: self._output.stream()}
        attached = {"AttachStdin": bool(stdin), "AttachStdout": True, "AttachStderr": True, "Tty": False}
        self._id = container.prepare({**command, **attached})
        self._stream, self._early = engine.converse(f"/exec/{self._id}/start", {"Detach": False, "Tty": False})
        self._buffer = bytearray()
        self._first = bytearray()
        self._thread.name = f"exec-{self._id[:12]}"
        self._thread.start()

    def catch_up(self) -> None:
        """As `CommandProcess` says. An engine does not report that it has passed on everything: it falls
        silent."""
        with self._reading:
            while not self.ended and readable(self._stream, _SILENCE) and self._drain():
                pass
            if not self.ended:
                self._output.release()

    def _kill(self) -> None:
        if self.ended:
            self._container.clear()
        else:
            self._container.kill()

    def _abandon(self) -> int:
        with contextlib.suppress(EngineError):
            self._container.kill()
        return _KILLED

    def _close(self) -> None:
        self._stream.close()

    def _converse(self) -> int:
        with self._reading:
            self._take(self._early)
        with selectors.DefaultSelector() as selector:
            selector.register(self._stream, selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unwritten else 0))
            look = time.monotonic() + _LONGEST
            while self._exchange(selector, max(0.0, look - time.monotonic())):
                if time.monotonic() < look:
                    continue
                if not self._look()["Running"]:  # a child left behind holds its streams open
                    break
                look = time.monotonic() + _LONGEST
        pause = _SHORTEST
        while (found := self._look())["Running"]:  # it has closed its streams and continues
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)
        with self._reading:
            self._drain()
        return self._judged(found)

    def _look(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._engine.call("GET", f"/exec/{self._id}/json")
        return found

    def _exchange(self, selector: selectors.BaseSelector, seconds: float) -> bool:
        """Reads and writes as far as the stream is ready within this time; False at its end."""
        for _, events in selector.select(seconds):
            if events & selectors.EVENT_WRITE and self._wrote():
                selector.modify(self._stream, selectors.EVENT_READ)
            if events & selectors.EVENT_READ:
                with self._reading:
                    if self._read() == 0:
                        return False
        return True

    def _judged(self, found: Mapping[str, Any]) -> int:
        code = found.get("ExitCode")
        if not found.get("Pid") and code in (126, 127):
            self.refusal = _in_words(self._first.decode(errors="replace"))
        return _KILLED if code is None else int(code)

    def _read(self) -> int | None:
        """Reads once and passes the data on: the number of bytes, 0 at the end, None when nothing is there yet."""
        try:
            data = self._stream.recv(_BLOCK)
        except BlockingIOError:
            return None
        except ConnectionResetError:
            return 0
        self._take(data)
        return len(data)

    def _drain(self) -> bool:
        """Reads the stream until it is empty, or for so long if it is never empty: False at its end."""
        taken = 0
        while taken < _AT_ONCE and (size := self._read()):
            taken += size
        return size is None

    def _take(self, data: bytes) -> None:
        """Passes on frames: the stream's number, three zero bytes, the length as four bytes, and that many bytes."""
        self._buffer += data
        start = 0
        while len(self._buffer) - start >= _HEADER:
            end = start + _HEADER + int.from_bytes(self._buffer[start + 4 : start + _HEADER], "big")
            if end > len(self._buffer):
                break
            said = bytes(self._buffer[start + _HEADER : end])
            self._first += said[: max(0, _QUOTED - len(self._first))]
            if self._buffer[start] in self._streams:
                self._streams[self._buffer[start]].feed(said)
            start = end
        del self._buffer[:start]

    def _wrote(self) -> bool:
        """Writes the next bytes; True when none are left, or the command does not read them."""
        try:
            self._unwritten = self._unwritten[self._stream.send(self._unwritten[:_BLOCK]) :]
        except BlockingIOError:
            return False
        except OSError:  # a command need not read its stdin
            self._unwritten = self._unwritten[:0]
        if self._unwritten:
            return False
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_WR)
        return True


def _in_words(said: str) -> str:
    """The reason why a command could not be started, in the words used for a process of this machine."""
    text = _SUFFIX.sub("", _PREFIX.sub("", said.strip().partition("\n")[0].rstrip(), count=1))
    if found := _PROGRAM.search(text):
        return f"fork/exec {found[1]}: {found[2]}"
    if found := _MISSING.search(text):
        return f'exec: "{found[1]}": executable file not found in $PATH'
    if found := _DIRECTORY.search(text):
        return f"transform.working_dir: {found[1]} is not a directory in the image"
    return text or "the container engine could not start the command"
