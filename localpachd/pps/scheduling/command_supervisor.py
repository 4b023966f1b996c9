"""A command that must not end: started again when it does, after a growing pause, with its output in the log.

Pachyderm restarts spouts only; here services that died are restarted, too. Knows neither jobs nor datums.
"""

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from localpachd.pfs.pfs_service import PfsService
from localpachd.pps import log_rows
from localpachd.pps.pps_entities import LogLevel, LogMessage
from localpachd.pps.scheduling.event_queue import EventQueue
from localpachd.worker.tasks import CancelToken, DatumWork, LogLine, ServicePorts, Task, TaskRunner

_FIRST_DELAY = 1.0
_LONGEST_DELAY = 60.0

_log = logging.getLogger(__name__)


class CommandSupervisor:
    """Keeps one command running until it is cancelled. `line` holds the fields that all its log lines share."""

    def __init__(
        self, pfs: PfsService, runner: TaskRunner, task: Task, ports: ServicePorts | None, line: LogMessage
    ) -> None:
        self._pfs = pfs
        self._runner = runner
        self._task = task
        self._ports = ports
        self._line = line
        self._lines: EventQueue[LogMessage] = EventQueue()
        self._lock = threading.Lock()
        self._token = CancelToken()
        self._cancelled = threading.Event()
        self.started = time.time_ns()

    def cancel(self) -> None:
        """Ends the command and does not start it again."""
        self._cancelled.set()
        with self._lock:
            self._token.cancel()

    def restart(self, identity: str) -> bool:
        """Restarts the command if it runs on this datum. Returns whether it does."""
        with self._lock:
            return self._token.restart({identity})

    def run(self, datum: DatumWork) -> None:
        """Keeps the command running on a datum; returns after `cancel`."""
        keeper = threading.Thread(target=self._keep, args=(datum,), name=f"{self._line.worker} command")
        keeper.start()
        for batch in self._lines.batches():
            try:
                self._write(batch)
            except Exception:  # the command continues even if its output is lost
                _log.exception("cannot store %d log lines of %s", len(batch), self._line.worker)
        keeper.join()

    def _write(self, lines: Sequence[LogMessage]) -> None:
        self._pfs.transact(lambda txn: log_rows.add(txn, lines))

    def _keep(self, datum: DatumWork) -> None:
        delay = _FIRST_DELAY
        try:
            while not self._cancelled.is_set():
                begun = time.monotonic()
                ended = self._once(datum)
                if self._cancelled.is_set():
                    return
                if time.monotonic() - begun > _LONGEST_DELAY:
                    delay = _FIRST_DELAY
                self._say(LogLine("", False, f"{ended or 'ended'}; starting again in {delay:.0f}s"), LogLevel.ERROR)
                self._cancelled.wait(delay)
                delay = min(2 * delay, _LONGEST_DELAY)
        finally:
            self._lines.close()

    def _once(self, datum: DatumWork) -> str:
        with self._lock:
            self._token = token = CancelToken()
        if self._cancelled.is_set():
            return ""
        self.started = time.time_ns()
        try:
            return self._runner.run_once(self._task, datum, self._ports, self._say, token)
        except Exception as error:  # an error of the machine: the next start may succeed
            _log.exception("cannot run %s; starting it again", self._line.worker)
            return str(error)

    def _say(self, line: LogLine, level: LogLevel = LogLevel.INFO) -> None:
        self._lines.put(replace(self._line, ts=time.time_ns(), user=line.user, message=line.message, level=level))
