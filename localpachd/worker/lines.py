"""Lines of text from a stream of any bytes. Reads nothing itself."""

from collections.abc import Callable

LONGEST_LINE = 64 << 10
"""Bytes of a line of output that are kept; the rest up to the line's end is dropped."""


class Lines:
    """Cuts a stream of bytes into lines of text, whatever the stream holds."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._buffer = bytearray()
        self._cut = False

    def feed(self, data: bytes) -> None:
        """Takes the next bytes, emitting each line that is complete."""
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._take(part)
            self._flush()
        self._take(rest)

    def finish(self) -> None:
        """Emits what follows the last newline."""
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
