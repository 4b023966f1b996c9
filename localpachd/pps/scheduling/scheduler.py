"""The scheduler: after every change it reads the state, plans, and applies the plan. Decides nothing itself.

Its pacer holds back the steps that a cluster's controllers and workers take some time after they are due.
"""

import threading
from collections.abc import Sequence

from localpachd.errors import NotFound
from localpachd.pace import Pace
from localpachd.pfs.changes import EVERYTHING, TopicChanges
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.upkeep.change_loop import ChangeLoop
from localpachd.pps import job_rows, jobs, pipeline_rows, pipelines
from localpachd.pps.pps_entities import Job, JobStates, Pipeline, PipelineState
from localpachd.pps.scheduling.base_run import BaseRun
from localpachd.pps.scheduling.command_runs import ServiceRun, SpoutRun, SpoutSidecars
from localpachd.pps.scheduling.job_run import JobRun
from localpachd.pps.scheduling.pipeline_views import PipelineViews
from localpachd.pps.scheduling.plan import (
    CancelRun,
    ConcludeJob,
    EndJob,
    PickUpJob,
    PlanAction,
    SchedulerSnapshot,
    SetPipelineState,
    StartJob,
    StartSpout,
    plan,
)
from localpachd.pps.specs.spec import PipelineKind
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.local_runner import LocalRunner
from localpachd.worker.tasks import WorkerPod

_PAUSE = 1.0  # seconds before the next round when an action could not be applied

_RESTARTING = "could not get RC."  # exactly Pachyderm's text


class PlanPacer:
    """Holds back steps of plans: another state of a pipeline, the start of its jobs and spouts until it has that state,
    and the first step of each job."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._delays = pace.delays()

    def due(
        self, snapshot: SchedulerSnapshot, actions: Sequence[PlanAction]
    ) -> tuple[Sequence[PlanAction], float | None]:
        """The actions to apply now, and the seconds until more of them are due, None if none will be by time alone."""
        if not self._pace.late:
            return actions, None
        known = {view.pipeline: view.state for view in snapshot.pipelines}
        steps = [_restarting(each, known) for each in actions]
        changing = {each.pipeline for each in steps if isinstance(each, SetPipelineState)}
        possible = [each for each in steps if not _waits(each, changing)]
        over, wait = self._delays.over(each for each in possible if isinstance(each, SetPipelineState | PickUpJob))
        return [each for each in possible if each in over or not isinstance(each, SetPipelineState | PickUpJob)], wait


def _restarting(action: PlanAction, known: dict[Pipeline, PipelineState]) -> PlanAction:
    """An updated pipeline restarts before it runs."""
    if (
        isinstance(action, SetPipelineState)
        and action.version > 1
        and action.state in (PipelineState.RUNNING, PipelineState.STANDBY)
        and known[action.pipeline] is PipelineState.STARTING
    ):
        return SetPipelineState(action.pipeline, action.version, PipelineState.RESTARTING, _RESTARTING, action.stopped)
    return action


def _waits(action: PlanAction, changing: set[Pipeline]) -> bool:
    """Whether a pipeline starts something only in the state that it is changing to."""
    match action:
        case PickUpJob(job) | StartJob(job) | StartSpout(job):
            return job.pipeline in changing
        case _:
            return False


class Scheduler:
    """Owns the active runs of jobs and spouts. All other state is in the database; a new scheduler continues there."""

    def __init__(
        self, pfs: PfsService, runner: LocalRunner, gpus: GpuPool, server_port: int, sidecars: SpoutSidecars
    ) -> None:
        self._sidecars = sidecars
        self._pfs = pfs
        self._runner = runner
        self._gpus = gpus
        self._server_port = server_port
        self._lock = threading.Lock()
        self._runs: dict[Job, BaseRun] = {}
        self._views = PipelineViews()
        self._pacing = PlanPacer(pfs.pace)
        self._unsure = False
        self._loop = ChangeLoop("scheduler", pfs.changes, self._round, _PAUSE)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        """Cancels all runs and waits until they have ended. The next scheduler on this database starts them again."""
        self._loop.stop()
        everything = self._active().values()
        for run in everything:
            run.cancel()
        for run in everything:
            run.join()

    def run_of(self, job: Job) -> BaseRun | None:
        return self._active().get(job)

    def _active(self) -> dict[Job, BaseRun]:
        with self._lock:
            return dict(self._runs)

    def _round(self, changed: TopicChanges) -> float | None:
        """Plans and applies the plan once. Returns the seconds until the next round even without a change, None for no
        limit."""
        snapshot = self._look(EVERYTHING if self._unsure else changed)
        self._unsure = False
        actions, wait = self._pacing.due(snapshot, plan(snapshot))
        for action in actions:
            if self._loop.stopping:
                break
            try:
                self._apply(action)
            except NotFound:  # deleted since the snapshot: the next round no longer sees it
                self._unsure = True
        return _PAUSE if self._unsure and (wait is None or wait > _PAUSE) else wait

    def _look(self, changed: TopicChanges) -> SchedulerSnapshot:
        active = frozenset(self._active())
        self._views.refresh(self._pfs.db, changed)
        images = self._runner.images(self._views.images())
        views = self._views.views(self._gpus, images)
        self._runner.keep({view.spec_commit for view in views if not view.stopped})
        return SchedulerSnapshot(views, active)

    def _apply(self, action: PlanAction) -> None:
        match action:
            case SetPipelineState(pipeline, version, state, reason, stopped):
                self._pfs.transact(lambda txn: pipelines.set_state(txn, pipeline, version, state, reason, stopped))
            case PickUpJob(job):
                self._pfs.transact(lambda txn: jobs.pick_up(txn, job))
            case EndJob(job, end, reason):
                self._pfs.transact(lambda txn: jobs.fail(txn, job, end, reason))
            case StartJob(job):
                self._start_job(job)
            case CancelRun(job):
                active = self.run_of(job)
                if active is not None:
                    active.cancel()
            case ConcludeJob(job):
                self._pfs.transact(lambda txn: jobs.conclude(txn, job))
            case StartSpout(run):
                self._start_spout(run)

    def _start_job(self, job: Job) -> None:
        if not self._pfs.transact(lambda txn: jobs.begin(txn, job)):
            return
        with self._pfs.db.read() as conn:
            info = job_rows.inspect(conn, job)
            marker = pipeline_rows.spec_commit(conn, job.pipeline, info.version)
        pod = WorkerPod(job.pipeline.project, job.pipeline.name, marker, server_port=self._server_port)
        kind = ServiceRun if info.spec.kind is PipelineKind.SERVICE else JobRun
        self._start(kind(self._pfs, self._runner, info, pod, self._over))

    def _start_spout(self, run: Job) -> None:
        with self._pfs.db.read() as conn:
            info = pipelines.inspect(conn, run.pipeline)
        if info.spec_commit.id != run.id or info.stopped:  # updated or stopped since the snapshot
            return
        pod = WorkerPod(run.pipeline.project, run.pipeline.name, run.id)
        self._start(SpoutRun(self._pfs, self._runner, info, pod, self._sidecars, self._over))

    def _start(self, run: BaseRun) -> None:
        with self._lock:
            self._runs[run.job] = run
        run.start()

    def _over(self, run: BaseRun) -> None:
        with self._lock:
            del self._runs[run.job]
        self._pfs.changes.notify((JobStates(run.job.pipeline),))
