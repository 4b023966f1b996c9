"""The cost of a plan, estimated from the last jobs: datums, time and storage."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.commit_history import CommitHistory
from pipelines.client.deployment import part_sizes
from pipelines.client.server.connection import Connection
from pipelines.cluster import gpu_holders
from pipelines.specifications.pipeline_specs import repos_read
from pipelines.specifications.segment_numbers import SegmentNumbers
from pipelines.upgrades import upgrade_steps
from pipelines.upgrades.upgrade_steps import UpgradeStep

_LOOKED_AT = 50
"""The newest jobs among which one that has computed something is looked for."""

_NANO = 1e9


@dataclass(frozen=True, slots=True)
class PipelineCost:
    """The work of one pipeline. anew: whether all of its datums are computed; else at most these are, as far as their
    inputs change. datums: None for a new pipeline, and for one without a job. seconds: None where no job tells. bytes:
    of the output that is replaced and stays in history."""

    pipeline: str
    anew: bool
    gpu: bool
    datums: int | None = None
    seconds: float | None = None
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class TotalCost:
    """The sums of costs: known datums and seconds, and the pipelines for which one of these is unknown."""

    datums: int
    seconds: float
    bytes: int
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PastJobs:
    """The jobs of a pipeline in numbers. total: the datums of the newest. computed: those of one that has computed
    some, and the seconds that its workers took for them."""

    total: int | None
    computed: int = 0
    seconds: float = 0.0


def read(connection: Connection, steps: Sequence[UpgradeStep], there: Mapping[str, Any]) -> list[PipelineCost]:
    """The costs of a plan, upstream first, for the deployed pipelines by name with details. Services compute
    nothing, and a localpachd without GPUs computes all on the CPU."""
    inputs = {name: info.details for name, info in there.items()}
    inputs |= {step.pipeline: step.request for step in steps if step.is_sent}
    for step in steps:
        if step.change == "deleted":
            inputs.pop(step.pipeline, None)
    reads = {name: sorted(repos_read(each.input)) for name, each in inputs.items()}
    leases = connection.retry(gpu_holders.local_leases, connection)
    has_gpus = leases is None or bool(leases.total)
    found = []
    for name, anew in upgrade_steps.recomputed_pipelines(steps, reads).items():
        if name not in inputs or inputs[name].HasField("service"):
            continue
        before = name in there
        past = connection.retry(past_jobs, connection, name) if before else PastJobs(None)
        size = connection.retry(_size, connection, name) if before else 0
        cost = estimated(name, anew, inputs[name], past, size)
        found.append(replace(cost, gpu=cost.gpu and has_gpus))
    order = {step.pipeline: at for at, step in enumerate(steps)}
    found.sort(key=lambda cost: order.get(cost.pipeline, len(order)))
    now, then = part_sizes.numbers(info.details for info in there.values()), part_sizes.numbers(inputs.values())
    return resized(found, now, then)


def estimated(name: str, anew: bool, spec: Any, past: PastJobs, size: int) -> PipelineCost:
    """The cost of one pipeline. spec: what it will be, as a request or as details. past: its jobs. size: of its output,
    in bytes."""
    workers = max(1, spec.parallelism_spec.constant)
    seconds = None
    if past.total == 0:
        seconds = 0.0
    elif past.total and past.computed:
        seconds = past.seconds / past.computed * past.total / min(workers, past.total)
    return PipelineCost(name, anew, bool(spec.resource_limits.gpu.number), past.total, seconds, size)


def resized(costs: Sequence[PipelineCost], before: SegmentNumbers, after: SegmentNumbers) -> list[PipelineCost]:
    """The costs, with the datums as they will be, of an upgrade that changes the segments and the buckets of a library.
    The time stays: it is that of as many pictures."""
    segments = after.segments / before.segments
    times = dict.fromkeys(("annotations", "index", "search", "labelled", "vector-index"), segments)
    times |= {"partition": after.buckets / before.buckets}
    return [
        each if each.datums is None else replace(each, datums=math.ceil(each.datums * times.get(each.pipeline, 1)))
        for each in costs
    ]


def total(costs: Iterable[PipelineCost]) -> TotalCost:
    """The sums of costs."""
    all_ = list(costs)
    return TotalCost(
        sum(each.datums or 0 for each in all_),
        sum(each.seconds or 0.0 for each in all_),
        sum(each.bytes for each in all_),
        tuple(each.pipeline for each in all_ if each.datums is None or each.seconds is None),
    )


def past_jobs(connection: Connection, name: str) -> PastJobs:
    """The last jobs of a pipeline in numbers."""
    call = connection.pps.ListJob(
        pps_pb2.ListJobRequest(pipeline=connection.pipeline(name), history=-1, number=_LOOKED_AT)
    )
    jobs = [job for job in islice(call, _LOOKED_AT) if job.state == pps_pb2.JOB_SUCCESS]
    if not jobs:
        return PastJobs(None)
    computed = next((job for job in jobs if job.data_processed), None)
    if computed is None:
        return PastJobs(jobs[0].data_total)
    return PastJobs(jobs[0].data_total, computed.data_processed, _busy(computed.stats))


def _busy(stats: Any) -> float:
    times = (stats.download_time, stats.process_time, stats.upload_time)
    return float(sum(each.ToNanoseconds() for each in times) / _NANO)


def _size(connection: Connection, name: str) -> int:
    return next((each.bytes for each in CommitHistory(connection).records(name) if each.good), 0)
