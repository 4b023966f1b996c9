"""What the server itself says: the newest lines of its log, kept in memory for those who ask for them."""

import itertools
import logging
from collections import deque
from collections.abc import Iterator

from localpachd.pfs.changes import Changes
from localpachd.pps.entities import Activity, LogMessage

_LINES = 10_000
_SECOND = 1_000_000_000


class ServerLog(logging.Handler):
    """Gathers what is logged while it is attached to a logger. Thread-safe."""

    def __init__(self, changes: Changes) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self._changes = changes
        self._numbers = itertools.count(1)
        self._lines: deque[tuple[int, int, str]] = deque(maxlen=_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps a record and wakes those who follow the log."""
        time_ = int(record.created * _SECOND)
        for line in self.format(record).splitlines():
            self._lines.append((next(self._numbers), time_, line))
        self._changes.notify((Activity(None),))

    def tail(self, since: int) -> "ServerTail":
        """The lines from a time on (ns since the epoch), to be read once and again."""
        return ServerTail(self._lines, since)


class ServerTail:
    """Remembers how far the log has been read."""

    def __init__(self, lines: deque[tuple[int, int, str]], since: int) -> None:
        self._lines = lines
        self._since = since
        self._position = 0

    def lines(self) -> Iterator[LogMessage]:
        """The lines not read yet."""
        for number, time_, text in self._lines.copy():
            if number > self._position and time_ >= self._since:
                self._position = number
                yield LogMessage(time_, None, "", "", "", user=False, master=False, message=text)
