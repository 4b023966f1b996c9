"""The graph of a project's pipelines read from its server, again and again, with few calls: two for each look, and the
rest, which changes slowly, now and then."""

from collections.abc import Mapping
from typing import Any

from pipelines.client import repository
from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.pipeline_owner import own
from pipelines.client.server.connection import Connection
from pipelines.client.server.parallel_reads import parallel_reads
from pipelines.cluster import gpu_holders
from pipelines.cluster.gpu_waits import PipelineWait
from pipelines.cluster.job_waits import JobWaits
from pipelines.cluster.pipeline_graph import PipelineGraph, ProjectState, graph

_CLOSELY = 8
"""Looks at pipelines and jobs for each look at waits, GPUs and the sizes of repos."""


class GraphReader:
    """Looks at one server. Reads are repeated while it is away."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._jobs = ProjectJobs(connection)
        self._waits = JobWaits(connection)
        self._looks = 0
        self._jobs_of: dict[str, Job | None] = {}
        self._found_waits: Mapping[str, PipelineWait] = {}
        self._held: Mapping[str, int] | None = None
        self._sizes: Mapping[str, int] = {}

    def look(self) -> PipelineGraph:
        """The present graph."""
        infos = own(self._connection.retry(self._jobs.pipelines))
        before = _states(self._jobs_of)
        self._jobs_of = self._connection.retry(self._jobs.at_work, infos, self._jobs_of)
        if self._looks % _CLOSELY == 0 or _states(self._jobs_of) != before:
            self._look_closely(infos)
        self._looks += 1
        found = {name: job for name, job in self._jobs_of.items() if job is not None}
        return graph(self._connection.project, ProjectState(infos, found, self._found_waits, self._held, self._sizes))

    def _look_closely(self, infos: Mapping[str, Any]) -> None:
        going = [job for job in self._jobs_of.values() if job is not None and not job.ended]
        with parallel_reads() as reads:
            working = reads.map(lambda job: self._connection.retry(self._jobs.with_workers, job), going)
            leases = reads.submit(self._connection.retry, gpu_holders.local_leases, self._connection)
            sizes = reads.submit(self._connection.retry, repository.sizes, self._connection)
            self._found_waits = self._waits.look(infos, list(working))
        machine = leases.result()
        self._held = None
        if machine is not None:
            held: dict[str, int] = {}
            for each in machine.holders:
                name = each.pipeline.removeprefix(f"{self._connection.project}/")
                held[name] = held.get(name, 0) + each.gpus
            self._held = held
        self._sizes = sizes.result()


def _states(jobs: Mapping[str, Job | None]) -> set[tuple[str, str, str]]:
    return {(name, job.id, job.state) for name, job in jobs.items() if job is not None}
