"""How things stand: every pipeline with its newest job, why datums failed, which files were refused, what is empty."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.connection import Connection
from pipelines.deploy import deployed
from pipelines.jobs import Job, Jobs
from pipelines.repository import Repository


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """A pipeline: its state in lower case and the reason for it, its newest job, and (datum id, reason) of each datum
    that failed there."""

    name: str
    state: str
    reason: str
    job: Job | None
    failures: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Rejection:
    """A file that is no picture: its true name, the stage that refused it, and why."""

    source: str
    stage: str
    reason: str


@dataclass(frozen=True, slots=True)
class Status:
    """The whole picture. `missing` names the pipelines of the specifications that are not deployed."""

    pipelines: list[PipelineStatus]
    missing: list[str]
    rejected: list[Rejection]
    notes: list[str] = field(default_factory=list)


def read(connection: Connection, names: Sequence[str]) -> Status:
    """The status of these pipelines."""
    there = deployed(connection)
    jobs = Jobs(connection)
    found = [_pipeline(jobs, there[name]) for name in names if name in there]
    missing = [name for name in names if name not in there]
    return Status(found, missing, rejections(connection, there), notes(connection))


def _pipeline(jobs: Jobs, info: Any) -> PipelineStatus:
    state = pps_pb2.PipelineState.Name(info.state).removeprefix("PIPELINE_").lower()
    job = jobs.newest(info.pipeline.name)
    failures = jobs.reasons(job) if job is not None and job.failed else []
    return PipelineStatus(info.pipeline.name, state, info.reason, job, tuple(failures))


def rejections(connection: Connection, there: Any = ("preprocess", "preprocess-queries")) -> list[Rejection]:
    """Every refused file of the library and the queries, by name."""
    found: list[Rejection] = []
    for pipeline in ("preprocess", "preprocess-queries"):
        if pipeline not in there:
            continue
        repo = Repository(connection, pipeline)
        for info in repo.glob("/rejected/*/*.jsonl"):
            lines = repo.read(info.file.path).decode().splitlines()
            found += [Rejection(each["source"], each["stage"], each["reason"]) for each in map(json.loads, lines)]
    return sorted(found, key=lambda each: (each.source, each.stage))


def notes(connection: Connection) -> list[str]:
    """What is missing for an answer: Pachyderm's jobs succeed with no datums when a repo is empty."""
    lacking = {
        "models": "there is no backbone yet, so no features are computed: `lookalike model push efficientnet-lite0`",
        "images": "the library is empty: `lookalike add PATH…`",
        "queries": "there are no queries yet: `lookalike query PATH…`",
    }
    return [note for repo, note in lacking.items() if _is_empty(connection, repo)]


def _is_empty(connection: Connection, repo: str) -> bool:
    try:
        return next(Repository(connection, repo).list(), None) is None
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.NOT_FOUND:
            return True
        raise
