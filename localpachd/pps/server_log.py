"""The server's own log: its newest lines, kept in memory for clients."""

import itertools
import logging
from collections import deque
from collections.abc import Iterator

from localpachd.pfs.changes import ChangeNotifier
from localpachd.pps.pps_entities import LogMessage, PipelineActivity

_LINES = 10_000
_SECOND = 1_000_000_000


class ServerLog(logging.Handler):
    """Collects the lines of the logger that it is attached to. Thread-safe."""

    def __init__(self, changes: ChangeNotifier) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self._changes = changes
        self._numbers = itertools.count(1)
        self._lines: deque[tuple[int, int, str]] = deque(maxlen=_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps a record and notifies those that follow the log."""
        time_ = int(record.created * _SECOND)
        for line in self.format(record).splitlines():
            self._lines.append((next(self._numbers), time_, line))
        self._changes.notify((PipelineActivity(None),))

    def tail(self, since: int) -> "ServerTail":
        """A reader of the lines since a time (ns since the epoch)."""
        return ServerTail(self._lines, since)


class ServerTail:
    """A reader of the log that remembers its position."""

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
