"""One command that goes on for ever: started again whenever it ends, after a growing pause, and what it says kept.

A cluster does so with spouts, and leaves services that have died lying. Knows neither jobs nor datums.
"""

import logging
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from localpachd.pfs.service import Pfs
from localpachd.pfs.transaction import Transaction
from localpachd.pps import logs, pipelines
from localpachd.pps.entities import LogMessage
from localpachd.worker.tasks import CancelToken, DatumWork, LogLine, Ports, Runner, Task

_FIRST_DELAY = 1.0
_LONGEST_DELAY = 60.0
_WAITING = 10_000
_BATCH_SECONDS = 0.2

_log = logging.getLogger(__name__)


class Supervisor:
    """One command kept running until it is cancelled. `line` is what its lines in the log have in common."""

    def __init__(self, pfs: Pfs, runner: Runner, task: Task, ports: Ports | None, line: LogMessage) -> None:
        self._pfs = pfs
        self._runner = runner
        self._task = task
        self._ports = ports
        self._line = line
        self._lines: queue.Queue[LogMessage | None] = queue.Queue(_WAITING)
        self._lock = threading.Lock()
        self._token = CancelToken()
        self._cancelled = threading.Event()
        self.started = time.time_ns()

    def cancel(self) -> None:
        """Ends the command for good."""
        self._cancelled.set()
        with self._lock:
            self._token.cancel()

    def restart(self, identity: str) -> bool:
        """Ends the command if it works on this datum; it is started again. True if it did."""
        with self._lock:
            return self._token.restart({identity})

    def run(self, datum: DatumWork) -> None:
        """Keeps the command running on a datum; returns when it was cancelled."""
        keeper = threading.Thread(target=self._keep, args=(datum,), name=f"{self._line.worker} command")
        keeper.start()
        more = True
        while more:
            batch, more = self._gather()
            try:
                self._write(batch)
            except Exception:  # the command goes on, heard or not
                _log.exception("%d lines of %s are lost", len(batch), self._line.worker)
        keeper.join()

    def _write(self, lines: Sequence[LogMessage]) -> None:
        """Keeps lines, unless their pipeline has been deleted meanwhile: its successor's log is not theirs."""
        pipeline = self._line.pipeline

        def step(txn: Transaction) -> None:
            if pipeline is not None and pipelines.exists(txn.conn, pipeline):
                logs.write(txn.conn, lines)

        if lines:
            self._pfs.transact(step)

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
                self._say(LogLine("", False, f"{ended or 'ended'}; starting again in {delay:.0f}s"))
                self._cancelled.wait(delay)
                delay = min(2 * delay, _LONGEST_DELAY)
        finally:
            self._lines.put(None)

    def _once(self, datum: DatumWork) -> str:
        with self._lock:
            self._token = token = CancelToken()
        if self._cancelled.is_set():
            return ""
        self.started = time.time_ns()
        try:
            return self._runner.run_once(self._task, datum, self._ports, self._say, token)
        except Exception as error:  # the machine's trouble: the next start may fare better
            _log.exception("%s is started again", self._line.worker)
            return str(error)

    def _say(self, line: LogLine) -> None:
        self._lines.put(replace(self._line, ts=time.time_ns(), user=line.user, message=line.message))

    def _gather(self) -> tuple[list[LogMessage], bool]:
        """The next line and those that follow soon, and whether there will be more."""
        found: list[LogMessage] = []
        deadline: float | None = None
        while len(found) < _WAITING:
            try:
                line = self._lines.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            if line is None:
                return found, False
            deadline = deadline or time.monotonic() + _BATCH_SECONDS
            found.append(line)
        return found, True
