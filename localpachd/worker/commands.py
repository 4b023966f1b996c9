"""A running command, in whatever backend, the meaning of its exit status, and its output as lines. Starts nothing."""

import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable

_QUOTED = 300  # characters of a process's last line that go into a reason

LONGEST_LINE = 64 << 10
"""Bytes of a line of output that are kept; the rest of the line is dropped."""

_BURST, _RATE, _LINE = 8 << 20, 128 << 10, 100
"""Bytes of a process's output that are kept at once, then each second, and that a line counts more than it has."""
_LAST = 500
"""Lines that are kept before the end of output that is left out: they say why a process failed."""


class LineSplitter:
    """Cuts a stream of bytes into lines of text; any bytes will do."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._buffer = bytearray()
        self._cut = False

    def feed(self, data: bytes) -> None:
        """Takes the next bytes and emits each line that is complete."""
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._take(part)
            self._flush()
        self._take(rest)

    def finish(self) -> None:
        """Emits the text after the last newline."""
        if self._buffer:
            self._flush()

    def _take(self, part: bytes) -> None:
        room = LONGEST_LINE - len(self._buffer)
        self._buffer += part[:room]
        self._cut = self._cut or len(part) > room

    def _flush(self) -> None:
        text = self._buffer.decode(errors="replace").rstrip("\r")
        self._buffer.clear()
        self._emit(f"{text} … (cut: the line is longer than {LONGEST_LINE} bytes)" if self._cut else text)
        self._cut = False


class ProcessOutput:
    """The output of one process, passed on to `line` from whatever thread reads its streams.

    `last` is the last line that was not blank, `failure` the exception that `line` raised: after that nothing is passed
    on, but the streams must still be emptied. Lines that come too fast are left out, and counted in a line of its own.
    `foreign` tells whether a line is from another program than the process.
    """

    def __init__(self, line: Callable[[str], None], foreign: Callable[[str], bool] = lambda _: False) -> None:
        self._line = line
        self._foreign = foreign
        self._muted = False
        self._room = float(_BURST)
        self._since = time.monotonic()
        self._held: deque[str] = deque(maxlen=_LAST)
        self._not_passed = 0
        self._streams: list[LineSplitter] = []
        self.last = ""
        self.failure: Exception | None = None

    def stream(self) -> LineSplitter:
        """The lines of another stream of the process."""
        self._streams.append(LineSplitter(self._said))
        return self._streams[-1]

    def finish(self) -> None:
        """Passes on what follows the last newline of each stream."""
        for stream in self._streams:
            stream.finish()
        self.release()

    def release(self) -> None:
        """Passes on the last of the lines that came too fast, after the number of those that are left out."""
        if left_out := self._not_passed - len(self._held):
            self._pass_on(f"… {left_out:,} lines of output are left out here: they came faster than the log keeps them")
        self._not_passed = 0
        while self._held:
            self._pass_on(self._held.popleft())

    def mute(self) -> None:
        """Drops all output from now on."""
        self._muted = True

    def _said(self, text: str) -> None:
        if self._muted or self._foreign(text):
            return
        self.last = text.strip() or self.last
        now = time.monotonic()
        self._room = min(_BURST, self._room + (now - self._since) * _RATE)
        self._since = now
        if self._held and self._room > _BURST / 2:
            self.release()
        if self._held or self._room <= 0:
            self._held.append(text)
            self._not_passed += 1
        else:
            self._pass_on(text)

    def _pass_on(self, text: str) -> None:
        self._room -= len(text) + _LINE
        if self.failure is None:
            try:
                self._line(text)
            except Exception as failure:  # stopping the process raises it
                self.failure = failure


class CommandProcess(ABC):
    """A command that was started, in whatever backend.

    `line` is called for each line of stdout and stderr, from another thread, unless the line is `foreign`: from another
    program than the command. `notify` is called once, when the process has ended. `returncode` is None while it runs
    and then as subprocess gives it. `refusal` is the reason why it never began, where that shows only afterwards, or
    why it was not let go on.
    """

    def __init__(
        self, stdin: bytes, line: Callable[[str], None], notify: Callable[[], None], foreign: Callable[[str], bool]
    ) -> None:
        self.returncode: int | None = None
        self.refusal = ""
        self._output = ProcessOutput(line, foreign)
        self._notify = notify
        self._reading = threading.Lock()
        self._unwritten = memoryview(stdin)
        self._thread = threading.Thread(target=self._attend, daemon=True)

    @property
    def last_line(self) -> str:
        """The last line of its output that was not blank."""
        return self._output.last

    @property
    def ended(self) -> bool:
        """Whether the process has ended and all of its output has been passed on."""
        return self.returncode is not None

    @property
    def held(self) -> int:
        """The bytes of memory that the process holds with its descendants; 0 where nobody counts them."""
        return 0

    @abstractmethod
    def catch_up(self) -> None:
        """Passes on the output that has arrived so far, before this returns."""

    def stop(self) -> None:
        """Kills the process and everything that it started, if they are still running, and returns when they are gone.

        The last output of a process that is killed is not passed on. Raises what passing on its lines raised.
        """
        self.catch_up()
        self._output.mute()
        self._kill()
        self._thread.join()
        if self._output.failure is not None:
            raise self._output.failure

    def _attend(self) -> None:
        try:
            returncode = self._converse()
        except Exception as failure:  # no process may continue without anybody to read its output
            self._output.failure = failure
            returncode = self._abandon()
        with self._reading:
            self._output.finish()
            self._close()
            self.returncode = returncode
        self._notify()

    @abstractmethod
    def _converse(self) -> int:
        """Reads and writes until the command has ended; returns its exit status."""

    @abstractmethod
    def _kill(self) -> None:
        """Kills what is still running."""

    @abstractmethod
    def _abandon(self) -> int:
        """Kills a process whose output can no longer be read; returns its exit status."""

    @abstractmethod
    def _close(self) -> None:
        """Closes its streams."""


def outcome(returncode: int, accepted: frozenset[int]) -> str:
    """The reason why an exit status (as subprocess gives it) counts as a failure, in Go's words; "" if it does not."""
    code = returncode if returncode >= 0 else 128 - returncode
    if code == 0 or code in accepted:
        return ""
    # A shell in between reports a death by signal as 128 + the signal's number.
    name = signal.strsignal(code - 128) if 128 < code < 128 + signal.NSIG else None
    return f"exit status {code}" if name is None else f"signal: {name.lower()}"


def failure_reason(process: CommandProcess, accepted: frozenset[int]) -> str:
    """The reason why the end of a process counts as a failure; "" if it does not."""
    assert process.returncode is not None
    return process.refusal or outcome(process.returncode, accepted)


def describe_end(process: CommandProcess) -> str:
    """The way a process ended, with its last line of output, which usually says why."""
    assert process.returncode is not None
    if process.refusal:
        return process.refusal
    status = outcome(process.returncode, frozenset()) or "exit status 0"
    return f"{status}: {process.last_line[:_QUOTED]}" if process.last_line else status
