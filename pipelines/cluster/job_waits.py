"""The reasons for which jobs wait, one for each pipeline, with what to do about it: GPUs, images, a stopped pipeline, a
full disk, an older job, an open commit, a cluster without room.

Pure functions of what the server says, and a reader that asks it.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found
from pipelines.cluster import gpu_holders, kube_client, pod_reasons
from pipelines.cluster.gpu_waits import GpuWaits, PipelineWait
from pipelines.errors import LookalikeError
from stages.datum.text_format import counted

_PATIENCE = 3.0
"""Seconds for which a job on a cluster may be without a worker before Kubernetes is asked for the reason."""

_ASK_EVERY = 15.0
"""Seconds between two questions to Kubernetes: each takes about one."""

STOPPED = "is stopped: `pachctl start pipeline {}` lets it continue"


class JobWaits:
    """The waits on one server. Reads are repeated while it is away."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._jobs = ProjectJobs(connection)
        self._gpus = GpuWaits(connection)
        self._local: bool | None = None
        self._idle_since: dict[tuple[str, str, str], float] = {}
        self._asked = 0.0
        self._troubles: Mapping[str, Sequence[str]] = {}

    def look(self, infos: Mapping[str, Any], jobs: Sequence[Job]) -> dict[str, PipelineWait]:
        """The waits of pipelines, given by name as PipelineInfos with details, whose jobs are among these. Of several
        jobs of a pipeline the first that has not ended counts."""
        current: dict[str, Job] = {}
        for job in jobs:
            if not job.ended and job.pipeline in infos:
                current.setdefault(job.pipeline, job)
        troubles = self._from_kubernetes(current)
        busy = {name for name, job in current.items() if job.state == "running"}
        found = self._gpus.look(infos, busy, (), troubles)
        waits = {
            name: found.get(name) or of_workers(job, troubles.get(name, ())) or self.reason(infos[name], job, current)
            for name, job in current.items()
        }
        stopped = {name: STOPPED.format(name) for name, info in infos.items() if info.stopped and name not in waits}
        return {
            **{name: PipelineWait("paused", text) for name, text in stopped.items()},
            **{name: wait for name, wait in waits.items() if wait is not None and wait.text},
        }

    def reason(self, info: Any, job: Job, current: Mapping[str, Job]) -> PipelineWait | None:
        """The reason for which the first job of a pipeline that has not ended waits, apart from GPUs and the cluster;
        `current` are these jobs by pipeline."""
        wait = of_pipeline(info, job)
        if wait is not None or job.started:
            return wait
        queue = self._connection.retry(self._jobs.queue, job.pipeline)
        ahead = older(queue, job)
        if not ahead or info.details.HasField("service"):  # whose newest job ends the others
            return self._upstream(job, current)
        deeper = None if ahead[0].started else self._upstream(ahead[0], {})
        newer = f", superseded by the newer commit {queue[0].id[:12]}," if queue[0].id != job.id else ""
        return PipelineWait(
            "waiting", f"waits{newer} behind {behind(ahead)}{f', which {deeper.text}' if deeper else ''}"
        )

    def _upstream(self, job: Job, current: Mapping[str, Job]) -> PipelineWait | None:
        """The wait for an open commit that the job reads, or for a job of another commit: those of its own are in
        `current`, with reasons of their own."""
        for commit in self._connection.retry(self._read_by, job):
            name = commit.branch.repo.name
            if name in current and current[name].id == commit.id:
                return None
            if not self._connection.retry(self._connection.inspect, commit).HasField("finished"):
                theirs = self._connection.retry(self._jobs.of, name, commit.id)
                return PipelineWait(
                    "waiting", f"waits for {of_other(theirs) if theirs else open_commit(name, commit.id)}"
                )
        return None

    def _read_by(self, job: Job) -> list[Any]:
        commit = self._connection.commit(job.pipeline, job.id)
        with suppress_not_found():  # where it was deleted since
            read = self._connection.inspect(commit).direct_provenance
            return [each for each in read if each.branch.repo.type == "user"]
        return []

    def _from_kubernetes(self, current: Mapping[str, Job]) -> Mapping[str, Sequence[str]]:
        """Kubernetes' reasons by pipeline, if a job has had no worker for a while. None of localpachd, which gives them
        itself."""
        if self._local is None:
            leases = self._connection.retry(gpu_holders.local_leases, self._connection)
            self._local = leases is not None
        if self._local:
            return {}
        now = time.monotonic()
        idle = {(job.pipeline, job.id, job.state) for job in current.values() if not job.busy}
        self._idle_since = {key: self._idle_since.get(key, now) for key in idle}
        if not any(now - since >= _PATIENCE for since in self._idle_since.values()):
            return {}
        if now - self._asked >= _ASK_EVERY or not self._asked:
            try:
                told = kube_client.ask("troubles", self._connection.namespace)
            except LookalikeError:  # kubectl does not work here: Pachyderm's own reasons must do
                told = {}
            project = f"{self._connection.project}/"
            self._troubles = {
                name.removeprefix(project): said for name, said in told.items() if name.startswith(project)
            }
            self._asked = now
        return self._troubles


def of_pipeline(info: Any, job: Job) -> PipelineWait | None:
    """The wait for which a pipeline, or its job, gives the reason itself."""
    if job.reason:
        return PipelineWait("waiting", job.reason)
    if info.stopped:
        return PipelineWait("paused", STOPPED.format(info.pipeline.name))
    if info.state == pps_pb2.PIPELINE_CRASHING:
        return PipelineWait("crashing", pod_reasons.plain_words(info.reason))
    if info.state == pps_pb2.PIPELINE_STARTING and info.reason:
        return PipelineWait("waiting", info.reason)
    return None


def of_workers(job: Job, troubles: Iterable[str]) -> PipelineWait | None:
    """The wait for which Kubernetes gives reasons."""
    said = list(dict.fromkeys(map(pod_reasons.plain_words, troubles)))
    return PipelineWait("waiting", "; ".join(said)) if said and not job.busy else None


def older(queue: Sequence[Job], job: Job) -> list[Job]:
    """The jobs of a queue, newest first, that come before a job: the one at work first."""
    ids = [each.id for each in queue]
    return list(reversed(queue[ids.index(job.id) + 1 :])) if job.id in ids else []


def behind(ahead: Sequence[Job]) -> str:
    """The jobs that another one waits behind, the one at work first."""
    more = f" and {len(ahead) - 1} more" if len(ahead) > 1 else ""
    return _with_state(ahead[0]) + more


def of_other(job: Job) -> str:
    """The job of an upstream pipeline that another one waits for."""
    return f"{job.pipeline}, {_with_state(job)}"


def open_commit(repo: str, id_: str) -> str:
    """An open commit of a repo that a job waits for."""
    return (
        f"commit {id_[:12]} of {repo}, which is open: its writer, or `pachctl finish commit {repo}@{id_}`, finishes it"
    )


def _with_state(job: Job) -> str:
    datums = f", {job.done:,} of {counted(job.total, 'datum', 'datums')} done" if job.started and job.total else ""
    return f"commit {job.id[:12]} ({job.state}{datums})"
