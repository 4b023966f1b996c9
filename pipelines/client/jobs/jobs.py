"""Jobs and their progress: the jobs of a commit set, watched until all of them have ended."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from graphlib import TopologicalSorter
from itertools import takewhile
from typing import Any

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.jobs import workers
from pipelines.client.jobs.workers import BusyWorker
from pipelines.client.pipeline_owner import own
from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found
from pipelines.specifications.pipeline_specs import leaves

_SOONEST, _LATEST, _PART = 0.25, 1.0, 50
"""Seconds between two looks at running jobs, since Pachyderm does not push progress: this part of the time that they
have been watched, within these bounds. Each look at a dozen jobs costs the server about 15 ms of its processor."""

_LOOKS_AT_PIPELINES = 8
"""Looks at jobs for each look at the pipelines and at the workers of running jobs."""

_RECENT = 200
"""The jobs among which `at_work` looks for those of all pipelines."""

_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
_COMPUTED = frozenset({"success", "failure"})
_STOPPED = frozenset({"killed", "unrunnable"})
_ENDED = _COMPUTED | _STOPPED
_UNSTARTED = frozenset({"created", "starting"})


@dataclass(frozen=True, slots=True)
class Job:
    """A pipeline's job: `state` in lower case without Pachyderm's prefix, counts of datums, `seconds` of running (None
    before it started). The counts of a cluster change only when a datum set ends; until then the busy workers, if they
    were asked for, are all that moves. With them come the attempts at datums that failed lately, in words. Times are in
    UTC."""

    pipeline: str
    id: str
    state: str
    processed: int
    skipped: int
    failed: int
    total: int
    seconds: float | None
    reason: str
    busy: tuple[BusyWorker, ...] = ()
    created: datetime | None = None
    finished: datetime | None = None
    attempts: tuple[str, ...] = ()

    @property
    def ended(self) -> bool:
        return self.state in _ENDED

    @property
    def stopped(self) -> bool:
        """Whether it ended before all of its datums were tried."""
        return self.state in _STOPPED

    @property
    def started(self) -> bool:
        """Whether its datums are known: it has left the states before running."""
        return self.state not in _UNSTARTED

    @property
    def done(self) -> int:
        """Datums that are finished, in whichever way."""
        return self.processed + self.skipped + self.failed


JobsCallback = Callable[[Sequence[Job], Mapping[str, Any]], None]
"""Takes the jobs, and every pipeline by name: its PipelineInfo with details."""


class ProjectJobs:
    """The jobs of one project's pipelines."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stub = connection.pps

    def pipelines(self, at: str = "") -> dict[str, Any]:
        """Every pipeline by name: its PipelineInfo with details. With a commit set's id, those that it has, as they
        were then."""
        then = pfs_pb2.CommitSet(id=at)
        request = pps_pb2.ListPipelineRequest(details=True, projects=[self._connection.in_project()], commit_set=then)
        return {info.pipeline.name: info for info in self._stub.ListPipeline(request)}

    def of_set(self, commit_set: str) -> list[Job]:
        """The jobs of a commit set, upstream first; none when it triggered nothing."""
        request = pps_pb2.InspectJobSetRequest(job_set=pps_pb2.JobSet(id=commit_set))
        with suppress_not_found():
            found = list(self._stub.InspectJobSet(request))
            return [_job(info) for info in found if info.job.pipeline.project.name == self._connection.project]
        return []

    def newest(self, pipeline: str) -> Job | None:
        """A pipeline's newest job."""
        return next(iter(self.last(pipeline, 1)), None)

    def last(self, pipeline: str, most: int) -> list[Job]:
        """A pipeline's last jobs, at most `most`, the newest first."""
        request = pps_pb2.ListJobRequest(pipeline=self._connection.pipeline(pipeline), number=most)
        return [_job(info) for info in self._stub.ListJob(request)]

    def unfinished(self) -> list[Job]:
        """The jobs that have not ended, upstream first; those of services never end and are left out."""
        ranks = _ranks(self.pipelines())
        return [job for pipeline in sorted(ranks, key=ranks.__getitem__) for job in self.queue(pipeline)]

    def queue(self, pipeline: str) -> list[Job]:
        """The jobs of a pipeline that have not ended, newest first. Pachyderm takes them in the other order."""
        request = pps_pb2.ListJobRequest(pipeline=self._connection.pipeline(pipeline))
        # A pipeline's jobs end in order, unless they are stopped.
        found = list(takewhile(lambda job: job.state not in _COMPUTED, map(_job, self._stub.ListJob(request))))
        return [job for job in found if not job.ended]

    def at_work(self, pipelines: Collection[str], known: Mapping[str, Job | None]) -> dict[str, Job | None]:
        """For each of these pipelines the job that is at work or comes next, or the newest if all have ended; None if
        it has none. One call, but for pipelines without a recent job that are not in `known`, an earlier result."""
        found: dict[str, Job | None] = {}
        settled: set[str] = set()
        call = self._stub.ListJob(pps_pb2.ListJobRequest(projects=[self._connection.in_project()], number=_RECENT))
        try:
            for job in map(_job, call):
                if job.pipeline in pipelines and job.pipeline not in settled:
                    if job.pipeline not in found or not job.ended:
                        found[job.pipeline] = job
                    if job.state in _COMPUTED:
                        settled.add(job.pipeline)
                if len(settled) == len(pipelines):
                    break
        finally:
            call.cancel()
        for name in set(pipelines) - found.keys():
            before = known.get(name)
            fresh = name not in known or (before is not None and not before.ended)
            found[name] = self.newest(name) if fresh else before
        return found

    def stop(self, job: Job, reason: str) -> bool:
        """Stops a job; False if it has ended."""
        request = pps_pb2.StopJobRequest(job=self._connection.job(job.pipeline, job.id), reason=reason)
        try:
            self._stub.StopJob(request)
        except grpc.RpcError:
            now = self.of(job.pipeline, job.id)
            if now is not None and not now.ended:
                raise
            return False
        return True

    def of(self, pipeline: str, id_: str) -> Job | None:
        """The job of a pipeline with this id."""
        return next((job for job in self.of_set(id_) if job.pipeline == pipeline), None)

    def with_workers(self, job: Job) -> Job:
        """The job with its busy workers, which only a running job has, and what they say."""
        if job.state != "running":
            return job
        of = self._connection.job(job.pipeline, job.id)
        with suppress_not_found():  # where it was deleted since
            info = self._stub.InspectJob(pps_pb2.InspectJobRequest(job=of, details=True))
            busy, attempts = workers.read(self._stub, of, info.details.worker_status)
            return replace(job, busy=busy, attempts=attempts)
        return job

    def on_gpus(self, job: Job) -> tuple[str, ...]:
        """The notices of a job's workers on GPUs that they do not use, or not as they were meant to. One call."""
        return workers.on_gpus(self._stub, self._connection.job(job.pipeline, job.id))

    def watch(self, commit_sets: Sequence[str], look: JobsCallback, only: Collection[str] = ()) -> list[Job]:
        """Calls `look` repeatedly until every job of the commit sets has ended; returns these jobs, upstream first. The
        jobs of services, which never end, and of other people's pipelines are left out. only: the pipelines to watch,
        with those upstream of them; by default all. Outlasts an outage of the server."""
        begun = time.monotonic()
        looks = 0
        seen: dict[tuple[str, str], Job] = {}
        while True:
            closely = looks % _LOOKS_AT_PIPELINES == 0
            if closely:
                infos = own(self._connection.retry(self.pipelines))
                ranks = _ranks(infos, only)
            looks += 1
            sets = [self._connection.retry(self.of_set, each) for each in commit_sets]
            found = [job for each in sets for job in each if job.pipeline in ranks]
            found.sort(key=lambda job: ranks[job.pipeline])
            if closely:
                close = [self._connection.retry(self.with_workers, job) for job in found]
                seen = {(job.pipeline, job.id): job for job in close}
            look([_as_seen(job, seen.get((job.pipeline, job.id))) for job in found], infos)
            if all(job.ended for job in found):
                return found
            time.sleep(_pause(time.monotonic() - begun))


def current(jobs: Sequence[Job]) -> list[Job]:
    """The jobs without those that were stopped since a later one of the same pipeline takes their place, as a
    deployment of a new version does."""
    last = {job.pipeline: job for job in sorted(jobs, key=lambda job: job.created or _BEFORE_ALL)}
    return [job for job in jobs if not job.stopped or job is last[job.pipeline]]


def _pause(watched: float) -> float:
    """The seconds until the next look at jobs that have been watched for so many."""
    return min(_LATEST, max(_SOONEST, watched / _PART))


def _ranks(infos: Mapping[str, Any], only: Collection[str] = ()) -> dict[str, int]:
    """The pipelines whose jobs end, each with its rank from upstream to downstream; only some of them, with those
    upstream of them, if these are named."""
    reads = {name: [leaf.repo for leaf in leaves(info.details.input)] for name, info in infos.items()}
    if only:
        wanted, found = set(only), set[str]()
        while wanted:
            found |= wanted
            wanted = {repo for name in wanted for repo in reads.get(name, ())} - found
        reads = {name: repos for name, repos in reads.items() if name in found}
    ordered = (name for name in TopologicalSorter(reads).static_order() if name in infos)
    return {name: rank for rank, name in enumerate(ordered) if not infos[name].details.HasField("service")}


def _job(info: Any) -> Job:
    return Job(
        pipeline=info.job.pipeline.name,
        id=info.job.id,
        state=pps_pb2.JobState.Name(info.state).removeprefix("JOB_").lower(),
        processed=info.data_processed + info.data_recovered,
        skipped=info.data_skipped,
        failed=info.data_failed,
        total=info.data_total,
        seconds=_seconds(info),
        reason=info.reason,
        created=_moment(info, "created"),
        finished=_moment(info, "finished"),
    )


def _moment(info: Any, field: str) -> datetime | None:
    found: datetime | None = getattr(info, field).ToDatetime(tzinfo=UTC) if info.HasField(field) else None
    return found


def _as_seen(job: Job, closely: Job | None) -> Job:
    """The job with the workers that it had when they were last asked for."""
    return job if closely is None else replace(job, busy=closely.busy, attempts=closely.attempts)


def _seconds(info: Any) -> float | None:
    if not info.HasField("started"):
        return None
    end = info.finished.ToNanoseconds() if info.HasField("finished") else time.time_ns()
    elapsed: float = (end - info.started.ToNanoseconds()) / 1e9
    return max(0.0, elapsed)
