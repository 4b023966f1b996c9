"""The scheduler: a thread that looks, plans and applies, woken by every change. Decides nothing itself."""

import logging
import sqlite3
import threading
from collections.abc import Mapping, Sequence

from localpachd.errors import NotFound
from localpachd.pfs.service import Pfs
from localpachd.pps import inputs, job_base, jobs, pipelines
from localpachd.pps.entities import Job, JobState, Pipeline, PipelineInfo
from localpachd.pps.job_run import JobRun
from localpachd.pps.plan import (
    Action,
    Conclude,
    GiveUp,
    InputView,
    JobView,
    LetGo,
    PickUp,
    PipelineView,
    Run,
    SetState,
    Snapshot,
    StartSpout,
    Stop,
    StopSpout,
    plan,
)
from localpachd.pps.service_run import ServiceRun
from localpachd.pps.spec import Kind, PipelineSpec
from localpachd.pps.spout_run import Sidecars, SpoutRun
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.tasks import ImageStatus, Pod, Runner

_PAUSE = 1.0  # seconds before looking again when an action could not be applied

_HERE = ImageStatus(ready=True)

_log = logging.getLogger(__name__)


class Scheduler:
    """Owns the jobs in hand. State lives in the database alone: started on any database, it goes on from there."""

    def __init__(self, pfs: Pfs, runner: Runner, gpus: GpuPool, server_port: int, sidecars: Sidecars) -> None:
        self._sidecars = sidecars
        self._pfs = pfs
        self._runner = runner
        self._gpus = gpus
        self._server_port = server_port
        self._lock = threading.Lock()
        self._runs: dict[Job, JobRun | ServiceRun] = {}
        self._spouts: dict[tuple[Pipeline, int], SpoutRun] = {}
        self._stopping = False
        self._thread = threading.Thread(target=self._loop, name="scheduler")

    def start(self) -> None:
        """Begins to look after the pipelines."""
        self._thread.start()

    def stop(self) -> None:
        """Lets go of everything and waits for it. What was running goes on when a scheduler is started again."""
        self._stopping = True
        self._pfs.changes.notify()
        if self._thread.ident is not None:
            self._thread.join()
        everything = [*self._in_hand().values(), *self._spouts_in_hand().values()]
        for run in everything:
            run.cancel()
        for run in everything:
            run.join()

    def run_of(self, job: Job) -> JobRun | ServiceRun | None:
        """The job's run, if it is in hand."""
        return self._in_hand().get(job)

    def _in_hand(self) -> dict[Job, JobRun | ServiceRun]:
        with self._lock:
            return dict(self._runs)

    def _spouts_in_hand(self) -> dict[tuple[Pipeline, int], SpoutRun]:
        with self._lock:
            return dict(self._spouts)

    def _loop(self) -> None:
        seen = -1
        while not self._stopping:
            seen = self._pfs.changes.count
            pause: float | None = None
            try:
                for action in plan(self._look()):
                    self._apply(action)
            except NotFound:  # deleted since the look: the next one, which that has called for, sees no more of it
                pause = _PAUSE
            except Exception:  # the loop must outlive whatever one action meets
                _log.exception("the scheduler tries again in %.0f s", _PAUSE)
                pause = _PAUSE
            if not self._stopping:
                self._pfs.changes.wait_past(seen, pause)

    def _look(self) -> Snapshot:
        in_hand, spouts = frozenset(self._in_hand()), frozenset(self._spouts_in_hand())
        with self._pfs.db.read() as conn:
            waiting: dict[Pipeline, list[JobView]] = {}
            for job, version, state in jobs.unfinished(conn):
                waiting.setdefault(job.pipeline, []).append(JobView(job, version, state))
            infos = pipelines.listed(conn)
            images = self._runner.images({info.spec.transform.image for info in infos if _at_work(info, waiting)})
            views = [self._view(conn, info, waiting.get(info.pipeline, []), images) for info in infos]
        return Snapshot(tuple(views), in_hand, spouts)

    def _view(
        self,
        conn: sqlite3.Connection,
        info: PipelineInfo,
        waiting: list[JobView],
        images: Mapping[str, ImageStatus],
    ) -> PipelineView:
        image = images.get(info.spec.transform.image, _HERE)
        for position, view in enumerate(waiting):
            if view.version == info.version:
                if view.state in (JobState.CREATED, JobState.STARTING):
                    found = _inputs(conn, view.job, info.spec)
                    waiting[position] = JobView(view.job, view.version, view.state, found)
                if info.spec.kind is not Kind.SERVICE:
                    break
        return PipelineView(
            pipeline=info.pipeline,
            version=info.version,
            state=info.state,
            reason=info.reason,
            stopped=info.stopped,
            autoscaling=info.spec.autoscaling,
            has_command=bool(info.spec.transform.cmd),
            kind=info.spec.kind,
            jobs=tuple(waiting),
            obstacle=_obstacle(self._gpus, info.spec.gpus) or ("" if image.ready or image.coming else image.reason),
            delay=image.reason if image.coming else "",
            remark=_remark(self._gpus, info.spec.gpus),
        )

    def _apply(self, action: Action) -> None:
        match action:
            case SetState(pipeline, version, state, reason):
                self._pfs.transact(lambda txn: pipelines.set_state(txn, pipeline, version, state, reason))
            case PickUp(job):
                self._pfs.transact(lambda txn: jobs.pick_up(txn, job))
            case GiveUp(job, reason):
                self._pfs.transact(lambda txn: jobs.fail(txn, job, JobState.UNRUNNABLE, reason))
            case Stop(job, reason):
                self._pfs.transact(lambda txn: jobs.stop(txn, job, reason))
            case Run(job):
                self._take(job)
            case LetGo(job):
                run = self.run_of(job)
                if run is not None:
                    run.cancel()
            case Conclude(job):
                self._pfs.transact(lambda txn: jobs.conclude(txn, job))
            case StartSpout(pipeline, version):
                self._start_spout(pipeline, version)
            case StopSpout(pipeline, version):
                spout = self._spouts_in_hand().get((pipeline, version))
                if spout is not None:
                    spout.cancel()

    def _take(self, job: Job) -> None:
        if not self._pfs.transact(lambda txn: jobs.begin(txn, job)):
            return
        with self._pfs.db.read() as conn:
            info = jobs.inspect(conn, job)
            marker = pipelines.spec_commit(conn, job.pipeline, info.version)
        pod = Pod(job.pipeline.project, job.pipeline.name, marker, server_port=self._server_port)
        kind = ServiceRun if info.spec.kind is Kind.SERVICE else JobRun
        run = kind(self._pfs, self._runner, info, pod, self._over)
        with self._lock:
            self._runs[job] = run
        run.start()

    def _start_spout(self, pipeline: Pipeline, version: int) -> None:
        with self._pfs.db.read() as conn:
            info = pipelines.inspect(conn, pipeline)
        if info.version != version:
            return
        pod = Pod(pipeline.project, pipeline.name, info.spec_commit.id)
        spout = SpoutRun(self._pfs, self._runner, info, pod, self._sidecars, self._spout_over)
        with self._lock:
            self._spouts[pipeline, version] = spout
        spout.start()

    def _spout_over(self, spout: SpoutRun) -> None:
        with self._lock:
            del self._spouts[spout.pipeline, spout.version]
        self._pfs.changes.notify()

    def _over(self, run: JobRun | ServiceRun) -> None:
        with self._lock:
            del self._runs[run.job]
        self._pfs.changes.notify()


def _at_work(info: PipelineInfo, waiting: Mapping[Pipeline, Sequence[JobView]]) -> bool:
    """Whether a pipeline should have workers."""
    if info.stopped or not info.spec.transform.cmd:
        return False
    return info.pipeline in waiting or not info.spec.autoscaling


def _obstacle(pool: GpuPool, wanted: int) -> str:
    """Why workers that want so many GPUs each can never be had here, or nothing."""
    if pool.schedulable(wanted):
        return ""
    return f"unschedulable: a worker asks for {wanted} GPUs, this machine has {len(pool.devices)}"


def _remark(pool: GpuPool, wanted: int) -> str:
    """What is not as asked for while such workers run, or nothing."""
    if not wanted or pool.leased(wanted):
        return ""
    if not pool.devices:
        return "no GPU here: running on the CPU"
    return f"only {len(pool.devices)} of {wanted} GPUs here: running on the CPU"


def _inputs(conn: sqlite3.Connection, job: Job, details: PipelineSpec) -> tuple[InputView, ...]:
    heads = job_base.inputs(conn, job)
    found = []
    for leaf in inputs.leaves(details.input):
        info = heads.get(job_base.repo_of(leaf))
        # A commit that is gone can never be read: that input has failed for good.
        found.append(InputView(leaf.name, info is None or info.finished is not None, info is None or bool(info.error)))
    return tuple(found)
