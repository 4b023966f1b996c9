"""The run of a service's job: its command serves the job's one datum until a newer job takes its place."""

import contextlib
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from localpachd.errors import NotFound
from localpachd.pfs.pfs_entities import Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps import datums, jobs, log_queries, log_rows
from localpachd.pps.datums import Datum
from localpachd.pps.pps_entities import JobInfo, JobState, LogMessage, WorkerStatus
from localpachd.pps.scheduling import datum_tasks, job_base
from localpachd.pps.scheduling.base_run import BaseRun
from localpachd.pps.scheduling.command_supervisor import CommandSupervisor
from localpachd.pps.scheduling.datum_selection import NumberedDatum
from localpachd.pps.scheduling.plan import unrunnable
from localpachd.pps.specs import inputs
from localpachd.storage.filesets import FileSetRef
from localpachd.worker.tasks import ServicePorts, TaskRunner, WorkerPod

SINGLE = "services must have a single datum"
_PAUSE = 1.0

_log = logging.getLogger(__name__)


class ServiceRun(BaseRun):
    """Serves one job that has been moved to RUNNING, until it is cancelled.

    It ends the job only if the input has more than one datum or was deleted.
    """

    def __init__(
        self, pfs: PfsService, runner: TaskRunner, info: JobInfo, pod: WorkerPod, over: Callable[["ServiceRun"], None]
    ) -> None:
        super().__init__(f"service {info.job}", lambda: over(self))
        self.job = info.job
        self._pfs = pfs
        self._runner = runner
        self._info = info
        self._worker = info.job.pipeline.worker(info.version, 0)
        self._task = info.spec.task(replace(pod, worker=self._worker))
        self._served: tuple[CommandSupervisor, Datum] | None = None

    def restart_datums(self, filters: Sequence[str]) -> bool:
        """Restarts the command if the datum's inputs match all filters. Returns whether they do."""
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
