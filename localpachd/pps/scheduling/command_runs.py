"""The runs of services and spouts: each keeps a command going, started again when it ends, after a growing pause, with
its output in the log.

Pachyderm restarts spouts only; here services that died are restarted, too. Knows neither jobs nor datums.
"""

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from localpachd.errors import NotFound
from localpachd.pfs.pfs_entities import Branch, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps import datums, jobs, log_queries, log_rows
from localpachd.pps.datums import Datum
from localpachd.pps.pps_entities import Job, JobInfo, JobState, LogLevel, LogMessage, PipelineInfo, WorkerStatus
from localpachd.pps.scheduling import datum_tasks, job_base
from localpachd.pps.scheduling.base_run import BaseRun
from localpachd.pps.scheduling.datum_selection import NumberedDatum
from localpachd.pps.scheduling.event_queue import EventQueue
from localpachd.pps.scheduling.plan import unrunnable
from localpachd.pps.specs import inputs
from localpachd.storage.filesets import FileSetRef
from localpachd.worker.local_runner import LocalRunner
from localpachd.worker.tasks import CancelToken, DatumWork, LogLine, ServicePorts, Task, WorkerPod

_FIRST_DELAY = 1.0
_LONGEST_DELAY = 60.0
SINGLE = "services must have a single datum"
_PAUSE = 1.0

SPOUT = "spout"
"""In the place of a job's id in a spout's log lines."""

_log = logging.getLogger(__name__)


class CommandSupervisor:
    """Keeps one command running until it is cancelled. `line` holds the fields that all its log lines share."""

    def __init__(
        self, pfs: PfsService, runner: LocalRunner, task: Task, ports: ServicePorts | None, line: LogMessage
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


class ServiceRun(BaseRun):
    """Serves one job that has been moved to RUNNING, until it is cancelled.

    It ends the job only if the input has more than one datum or was deleted.
    """

    def __init__(
        self, pfs: PfsService, runner: LocalRunner, info: JobInfo, pod: WorkerPod, over: Callable[[BaseRun], None]
    ) -> None:
        super().__init__("service", info.job, over)
        self._pfs = pfs
        self._runner = runner
        self._info = info
        self._worker = info.job.pipeline.worker(info.version, 0)
        self._task = replace(info.spec.task, pod=replace(pod, worker=self._worker))
        self._served: tuple[CommandSupervisor, Datum] | None = None

    def restart_datums(self, filters: Sequence[str]) -> bool:
        if self._served is None:
            return False
        supervisor, datum = self._served
        return log_queries.match_inputs(filters, datum) and supervisor.restart(datum.id)

    @property
    def status(self) -> tuple[WorkerStatus, ...]:
        """The one worker with the datum that it serves; empty until it does."""
        if self._served is None:
            return ()
        supervisor, datum = self._served
        return (WorkerStatus(self._worker, self.job.id, supervisor.started, datum.inputs),)

    def _work(self) -> None:
        try:
            self._serve()
        except Exception:  # the scheduler starts the job again
            _log.exception("service %s failed to run; starting it again", self.job)
            self._cancelled.wait(_PAUSE)

    def _serve(self) -> None:
        found, files, gone = self._look()
        if gone:
            self._fail(JobState.UNRUNNABLE, unrunnable(gone))
        elif len(found) > 1:
            self._fail(JobState.FAILURE, SINGLE)
        elif not found:
            # As on a cluster, the job waits for the next one; here the log says why.
            self._pfs.transact(lambda txn: log_rows.add_server_line(txn, self.job, f"{SINGLE}: no datum yet"))
            self._cancelled.wait()
        else:
            self._supervise(found[0], files)

    def _look(self) -> tuple[list[Datum], Mapping[Repo, FileSetRef], list[str]]:
        """The first two datums, the files that they read, and the names of inputs whose commits were deleted."""
        tree = self._info.spec.input
        with self._pfs.db.read() as conn:
            commits = job_base.inputs(conn, self.job)
            gone = [leaf.name for leaf in inputs.leaves(tree) if job_base.repo_of(leaf) not in commits]
            if gone or tree is None:
                return [], {}, gone
            find = job_base.finder(conn, lambda leaf: commits[job_base.repo_of(leaf)])
            return list(itertools.islice(datums.expand(tree, find), 2)), job_base.layers(conn, commits.values()), gone

    def _supervise(self, datum: Datum, files: Mapping[Repo, FileSetRef]) -> None:
        asked = self._info.spec.service
        assert asked is not None
        ports = ServicePorts(asked.internal_port, asked.external_port, self._task.pod.server_port)
        inputs_ = log_queries.inputs_of(datum)
        line = LogMessage(0, self.job.pipeline, self.job.id, datum.id, self._worker, False, False, "", inputs_)
        supervisor = self._hold(CommandSupervisor(self._pfs, self._runner, self._task, ports, line))
        self._served = supervisor, datum
        supervisor.run(datum_tasks.datum_work(NumberedDatum(0, datum, ""), self.job, files))

    def _fail(self, state: JobState, reason: str) -> None:
        with contextlib.suppress(NotFound):  # deleted in the meantime
            self._pfs.transact(lambda txn: jobs.fail(txn, self.job, state, reason))


class SpoutSidecars(Protocol):
    """Serves the API to spouts, each on a port of its own. Implemented by the room that knows gRPC."""

    def open(self, output: Branch) -> int:
        """Serves the API on a fresh loopback port and returns it; callers there may commit to this output branch."""

    def close(self, port: int) -> None:
        """Stops serving a port that `open` returned."""


class SpoutRun(BaseRun):
    """Keeps one version of a spout running until it is cancelled."""

    def __init__(
        self,
        pfs: PfsService,
        runner: LocalRunner,
        info: PipelineInfo,
        pod: WorkerPod,
        sidecars: SpoutSidecars,
        over: Callable[[BaseRun], None],
    ) -> None:
        super().__init__("spout", Job(info.pipeline, info.spec_commit.id), over)
        self._sidecars = sidecars
        # The port identifies the spout: callers on it may commit to the spout's output.
        self._port = sidecars.open(Branch(info.pipeline.repo, info.spec.output_branch))
        worker = info.pipeline.worker(info.version, 0)
        own = replace(pod, worker=worker, server_port=self._port)
        task = replace(info.spec.task, pod=own, pachd=f"127.0.0.1:{self._port}")
        asked = info.spec.service
        ports = ServicePorts(asked.internal_port, asked.external_port, self._port, own_network=False) if asked else None
        line = LogMessage(0, info.pipeline, SPOUT, "", worker, False, False, "")
        self._supervisor = self._hold(CommandSupervisor(pfs, runner, task, ports, line))

    def _work(self) -> None:
        try:
            self._supervisor.run(DatumWork(SPOUT, (), {}))
        finally:
            self._sidecars.close(self._port)
