"""The state of a server in numbers, read when it is asked for: jobs, datums, commits, disk, GPUs, workers.

Counts nothing itself, and reads no content.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from localpachd.database import Database
from localpachd.pfs import commits
from localpachd.pps import job_rows
from localpachd.pps.pps_entities import JobState
from localpachd.storage.chunk_store import ChunkStore
from localpachd.worker.gpu_pool import GpuPool

_NAME = "localpachd"


@dataclass(frozen=True, slots=True)
class StateSources:
    """The parts of one server whose state is shown. `waiting` gives the calls that wait, by method, `workers` the
    number of workers that run, `warm` that of those that wait for work, `retention` the days after which old
    commits go, `quota` the most bytes."""

    root: Path
    db: Database
    chunks: ChunkStore
    gpus: GpuPool
    waiting: Callable[[], Mapping[str, int]]
    workers: Callable[[], int]
    warm: Callable[[], int]
    retention: int = 0
    quota: int = 0


class StateCollector(Collector):
    """Reads the state of a server at each scrape."""

    def __init__(self, sources: StateSources, registry: CollectorRegistry) -> None:
        self._sources = sources
        registry.register(self)
        ProcessCollector(namespace=_NAME, registry=registry)

    def describe(self) -> list[GaugeMetricFamily]:
        """Nothing: the registry would otherwise read the state to learn the names."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Every figure of this moment."""
        sources = self._sources
        yield _by("calls_waiting", "Calls that wait for something, without a thread.", "method", sources.waiting())
        yield from self._work()
        yield _by("disk_bytes", "Bytes of the root on the disk, by part.", "part", self._disk())
        free = os.statvfs(sources.root)
        yield _one("disk_free_bytes", "Free bytes of the disk of the root.", free.f_bavail * free.f_frsize)
        yield _one("disk_total_bytes", "All bytes of the disk of the root.", free.f_blocks * free.f_frsize)
        yield _one("gpus", "GPUs that pipelines may use.", len(sources.gpus.devices))
        yield _one("gpus_leased", "GPUs that workers hold.", len(sources.gpus.holders()))
        yield _one("retention_days", "Days after which old commits go; 0 for never.", sources.retention)
        yield _one("quota_bytes", "The most bytes that may be stored; 0 for no limit.", sources.quota)
        yield _one("workers", "Workers that run.", sources.workers())
        yield _one("workers_warm", "Workers that wait for their next datum set.", sources.warm())

    def _work(self) -> Iterator[GaugeMetricFamily]:
        with self._sources.db.read() as conn:
            jobs, datums = job_rows.totals(conn)
            unfinished = commits.count_unfinished(conn)
        every = {_short(each): jobs.get(each, 0) for each in JobState if each is not JobState.UNKNOWN}
        yield _by("jobs", "Jobs that the server knows, by state.", "state", every)
        yield _by("datums", "Datums of these jobs, by outcome.", "outcome", datums)
        yield _one("commits_open", "Commits that are not finished.", unfinished)

    def _disk(self) -> Mapping[str, int]:
        usage = self._sources.chunks.usage()
        database = self._sources.db.usage()
        return {
            "chunks": usage.chunks,
            "trash": usage.trash,
            "database": database.file,
            "log": database.log + usage.log,
        }


def _short(state: JobState) -> str:
    return state.removeprefix("JOB_").lower()


def _one(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{_NAME}_{name}", text, value=value)


def _by(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"{_NAME}_{name}", text, labels=(label,))
    for key in sorted(values):
        family.add_metric((key,), values[key])
    return family
