"""Deployment: the repos and pipelines of the specifications created or updated, and only those that differ."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from pipelines.client.connection import Connection
from pipelines.client.jobs import Jobs
from pipelines.errors import LookalikeError
from pipelines.specifications.reading import SOURCES, Spec, sources

ANNOTATION = "lookalike/spec-sha256"
"""The pod annotation that holds the fingerprint of a pipeline's specification."""

_DEFAULT_IMAGE = "ubuntu:20.04"
"""Pachyderm's."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """The outcome for one repo or pipeline: created, updated, updated and reprocessed, or unchanged."""

    kind: str
    name: str
    action: str


def deploy(
    connection: Connection,
    specs: Sequence[Spec],
    report: Callable[[Deployed], None] = lambda _: None,
    again: Collection[str] = (),
) -> list[Deployed]:
    """Creates the repos and pipelines that are missing and updates those whose specification has changed. A
    pipeline with another command, environment or image is reprocessed: Pachyderm itself would keep the old
    results. So are the pipelines named in `again`."""
    done: list[Deployed] = []

    def note(kind: str, name: str, action: str) -> None:
        done.append(Deployed(kind, name, action))
        report(done[-1])

    for repo in sources(specs):
        note("repo", repo, make_repo(connection, repo))
    there = Jobs(connection).pipelines()
    for spec in specs:
        note("pipeline", spec.name, _make_pipeline(connection, spec, there.get(spec.name), spec.name in again))
    return done


def make_repo(connection: Connection, repo: str) -> str:
    """Creates a source repo unless it exists; returns "created" or "unchanged"."""
    try:
        connection.client.inspect_repo(repo, project_name=connection.project)
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.NOT_FOUND:
            raise
    else:
        return "unchanged"
    connection.client.create_repo(repo, SOURCES.get(repo, ""), project_name=connection.project)
    return "created"


def _make_pipeline(connection: Connection, spec: Spec, old: Any, again: bool) -> str:
    request = spec.request()
    request.pipeline.project.name = connection.project
    request.metadata.annotations[ANNOTATION] = spec.fingerprint
    action = "created"
    if old is not None:
        if not again and old.details.metadata.annotations.get(ANNOTATION) == spec.fingerprint:
            return "unchanged"
        request.update = True
        request.reprocess = again or _code(request.transform) != _code(old.details.transform)
        action = "updated, reprocessing everything" if request.reprocess else "updated"
    try:
        connection.client.create_pipeline_from_request(request)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.UNAVAILABLE:
            raise
        raise LookalikeError(f"{spec.path}: {error.details()}") from error
    return action


def _code(transform: Any) -> tuple[Any, ...]:
    """The parts of a transform that determine its output and that Pachyderm does not compare."""
    image = transform.image or _DEFAULT_IMAGE
    return image, tuple(transform.cmd), tuple(transform.stdin), sorted(transform.env.items())
