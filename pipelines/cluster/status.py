"""How things stand: every pipeline with its newest job, why datums failed, which files were refused, what is empty."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.connection import Connection
from pipelines.client.jobs import Failure, Job, Jobs
from pipelines.client.repository import Repository
from pipelines.cluster import gpu_holders, kubernetes
from pipelines.errors import LookalikeError

MOST_FAILURES = 10
"""How many failed datums of a pipeline are told at most."""

REFUSING = {"preprocess": "images", "preprocess-queries": "queries"}
_LACKING = {
    "models": "there is no backbone yet, so no features are computed: `lookalike model push efficientnet-lite0`",
    "images": "the library is empty: `lookalike add PATH…`",
    "queries": "there are no queries yet: `lookalike query PATH…`",
}


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """A pipeline: its state in lower case and the reason for it, its newest job, some of the datums that failed there,
    and what Kubernetes says of workers that cannot run."""

    name: str
    state: str
    reason: str
    job: Job | None
    failures: Sequence[Failure] = ()
    troubles: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Rejection:
    """A file that is no picture: the repo that it was put into, its true name, the stage that refused it, and why."""

    repo: str
    source: str
    stage: str
    reason: str


@dataclass(frozen=True, slots=True)
class Status:
    """The whole picture. `missing` names the pipelines of the specifications that are not deployed."""

    pipelines: list[PipelineStatus]
    missing: list[str]
    rejected: list[Rejection]
    notes: list[str]


def read(connection: Connection, names: Sequence[str], namespace: str = "") -> Status:
    """The status of these pipelines, whose workers are in a namespace of the cluster ("" for the context's own)."""
    jobs = Jobs(connection)
    there = jobs.pipelines()
    troubles, unknown = _troubles(connection, namespace)
    found = [
        _pipeline(jobs, there[name], troubles.get(f"{connection.project}/{name}", ()))
        for name in names
        if name in there
    ]
    missing = [name for name in names if name not in there]
    return Status(found, missing, rejections(connection), [*unknown, *notes(connection)])


def _troubles(connection: Connection, namespace: str) -> tuple[Mapping[str, Sequence[str]], list[str]]:
    """What keeps workers waiting, by pipeline, and why that cannot be told. localpachd says it all itself."""
    if gpu_holders.local_leases(connection) is not None:
        return {}, []
    try:
        return kubernetes.troubles(namespace), []
    except LookalikeError as error:
        return {}, [f"what keeps workers waiting cannot be told: {error}"]


def _pipeline(jobs: Jobs, info: Any, troubles: Sequence[str]) -> PipelineStatus:
    state = pps_pb2.PipelineState.Name(info.state).removeprefix("PIPELINE_").lower()
    job = jobs.newest(info.pipeline.name)
    failures = jobs.failures(job, MOST_FAILURES) if job is not None and job.failed else []
    return PipelineStatus(info.pipeline.name, state, info.reason, job, failures, troubles)


def rejections(connection: Connection) -> list[Rejection]:
    """Every refused file of the library and of the queries, by name."""
    found: list[Rejection] = []
    for pipeline, repo in REFUSING.items():
        output = Repository(connection, pipeline).good()
        for _, content in output.read_all("/rejected/*/*.jsonl") if output is not None else ():
            lines = map(json.loads, content.decode().splitlines())
            found += [Rejection(repo, line["source"], line["stage"], line["reason"]) for line in lines]
    return sorted(found, key=lambda each: (each.repo, each.source, each.stage))


def notes(connection: Connection) -> list[str]:
    """What is missing for an answer: Pachyderm's jobs succeed with no datums when a repo is empty."""
    return [note for repo, note in _LACKING.items() if not Repository(connection, repo).exists("/")]
