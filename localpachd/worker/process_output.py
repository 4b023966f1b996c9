"""Cutting streams of arbitrary bytes into lines of text, and passing these on. Reads nothing itself."""

from collections.abc import Callable

LONGEST_LINE = 64 << 10
"""Bytes of a line of output that are kept; the rest of the line is dropped."""


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
    on, but the streams must still be emptied. `foreign` tells whether a line is from another program than the process.
    """

    def __init__(self, line: Callable[[str], None], foreign: Callable[[str], bool] = lambda _: False) -> None:
        self._line = line
        self._foreign = foreign
        self._muted = False
        self.last = ""
        self.failure: Exception | None = None

    def stream(self) -> LineSplitter:
        """The lines of another stream of the process."""
        return LineSplitter(self._said)

    def mute(self) -> None:
        """Drops all output from now on."""
        self._muted = True

    def _said(self, text: str) -> None:
        if self._muted or self._foreign(text):
            return
        self.last = text.strip() or self.last
        if self.failure is None:
            try:
                self._line(text)
            except Exception as failure:  # stopping the process raises it
                self.failure = failure
