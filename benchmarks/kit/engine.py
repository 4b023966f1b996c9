"""Owns the cost of jobs: their seconds, and the seconds of these spent in user code. Reads it through the API alone."""

import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.server.connection import Connection

_REPORT_EVERY = 30.0
"""Seconds between two lines on long jobs."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a pipeline's jobs in total: seconds from start to end, the average seconds of its workers in user
    code, and the datums processed and skipped."""

    pipeline: str
    wall: float
    user: float
    processed: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Settled:
    """The work for some commits, upstream first, and the end of the last job in seconds since the epoch."""

    works: tuple[Work, ...]
    ended: float


def share(works: Sequence[Work]) -> float:
    """The part of the jobs' time without user code: 0 to 1."""
    wall = sum(each.wall for each in works)
    return 1 - sum(each.user for each in works) / wall if wall else 0.0


def longest(seconds: Mapping[str, float], reads: Mapping[str, Collection[str]]) -> float:
    """The seconds of the longest chain of pipelines in which each reads the one before; 0 if there is none. A pipeline
    without an entry in `seconds` took none."""
    chains: dict[str, float] = {}
    for name in TopologicalSorter(reads).static_order():
        chains[name] = seconds.get(name, 0.0) + max((chains[each] for each in reads.get(name, ())), default=0.0)
    return max(chains.values(), default=0.0)


def settle(
    connection: Connection,
    commits: Sequence[str],
    between: Callable[[float, float], float] = lambda begun, ended: ended - begun,
) -> Settled:
    """Waits until every job of some commits has ended, with progress on stderr, and reads their cost. `between`: the
    seconds between two times that count. Raises RuntimeError unless all jobs succeeded."""
    jobs = ProjectJobs(connection)
    ended = jobs.watch(commits, _Progress())
    bad = [each for each in ended if each.state != "success"]
    if bad:
        raise RuntimeError(f"the job of {bad[0].pipeline} ended as {bad[0].state}: {bad[0].reason}")
    if not ended:
        raise RuntimeError("the put started no job")
    workers = {name: info.parallelism for name, info in jobs.pipelines().items()}
    stub = pps_pb2_grpc.APIStub(connection.client._channel)
    infos = [info for each in commits for info in stub.InspectJobSet(_job_set(each))]
    works = []
    for pipeline in dict.fromkeys(each.pipeline for each in ended):
        of_it = [info for info in infos if info.job.pipeline.name == pipeline]
        works.append(
            Work(
                pipeline,
                sum(between(_seconds(info.started), _seconds(info.finished)) for info in of_it),
                sum(_user_seconds(stub, info, workers[pipeline]) for info in of_it),
                sum(info.data_processed for info in of_it),
                sum(info.data_skipped for info in of_it),
            )
        )
    return Settled(tuple(works), max(_seconds(info.finished) for info in infos))


def _seconds(moment: Any) -> float:
    return float(moment.ToNanoseconds() / 1e9)


def _user_seconds(stub: Any, info: Any, workers: int) -> float:
    """The time from each reply to NextDatum until the next call, summed over the datums that a job processed and
    divided by the workers that it could keep busy."""
    request = pps_pb2.ListDatumRequest(
        job=info.job, filter=pps_pb2.ListDatumRequest.Filter(state=[pps_pb2.DatumState.SUCCESS])
    )
    spent: list[float] = [each.stats.process_time.ToNanoseconds() / 1e9 for each in stub.ListDatum(request)]
    return sum(spent) / max(1, min(workers, len(spent)))


def _job_set(commit: str) -> Any:
    return pps_pb2.InspectJobSetRequest(job_set=pps_pb2.JobSet(id=commit))


class _Progress:
    """Reports the jobs that have ended, and now and then the progress of the others."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()
        self._last = time.monotonic()

    def __call__(self, jobs: Sequence[Job], infos: Mapping[str, Any]) -> None:
        for job in jobs:
            if job.ended and job.total and (job.pipeline, job.id) not in self._said:
                self._said.add((job.pipeline, job.id))
                _say(f"{job.pipeline}: {job.state}, {job.processed} of {job.total} datums, {job.seconds or 0:.1f} s")
        if time.monotonic() - self._last > _REPORT_EVERY:
            self._last = time.monotonic()
            for job in jobs:
                if job.state == "running":
                    _say(f"{job.pipeline}: {job.done} of {job.total} datums {infos[job.pipeline].reason}".rstrip())


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
