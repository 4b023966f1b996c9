"""The parameters of pipelines by version: the changes that each deployment made.

Pachyderm keeps every version of a pipeline, each with the commit in its repo of specifications.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from google.protobuf import json_format
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.commit_history import CommitHistory
from pipelines.client.deployment.deployment import DEPLOYED_BY
from pipelines.client.pipeline_owner import is_own
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError

_ALL = -1

_NOT_SET = frozenset(
    {
        "createdAt", "updatedAt", "workersStartedAt", "recentError", "workersRequested", "workersAvailable", "salt",
        "workerRc", "unclaimedTasks", "reason", "metadata", "description", "transform",
    }
)  # fmt: skip
"""Fields of a version that nobody sets to change an answer, and those that are compared by their parts."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A parameter that changed: its name, its values before and after ("" for none), and the pipelines that have it."""

    name: str
    before: str
    after: str
    pipelines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PipelineVersion:
    """A version of a pipeline: the commit of its specification, whose id its commit set shares, its start (UTC), and
    its parameters by name. salt: what a deployment changes to compute all again. author and description: who deployed
    it, with which command; "" if another client did."""

    pipeline: str
    number: int
    id: str
    started: datetime
    parameters: Mapping[str, str]
    salt: str
    author: str = ""
    description: str = ""


class PipelineVersions:
    """All versions of lookalike's pipelines in a project; those of others, which may run beside them, are left out."""

    def __init__(self, connection: Connection) -> None:
        request = pps_pb2.ListPipelineRequest(history=_ALL, details=True, projects=[connection.in_project()])
        infos = [*connection.pps.ListPipeline(request)]
        ours = {info.pipeline.name for info in infos if is_own(info)}
        versions = [_version(info) for info in infos if info.pipeline.name in ours]
        found = sorted(_dated(connection, versions), key=lambda each: (each.pipeline, each.number))
        self._by_id = {(each.pipeline, each.id): each for each in found}
        self._before = {(b.pipeline, b.number): a for a, b in pairwise(found) if a.pipeline == b.pipeline}

    @property
    def pipelines(self) -> list[str]:
        """The names of the pipelines that there are."""
        return sorted({name for name, _ in self._by_id})

    def newest_first(self) -> list[PipelineVersion]:
        """All of them."""
        return sorted(self._by_id.values(), key=lambda each: (each.started, each.number), reverse=True)

    def of(self, pipeline: str, id_: str) -> PipelineVersion | None:
        """The version of a pipeline with this commit of its specification."""
        return self._by_id.get((pipeline, id_))

    def before(self, version: PipelineVersion) -> PipelineVersion | None:
        """The version that this one replaced; None for the first."""
        return self._before.get((version.pipeline, version.number))


def differences(pairs: Iterable[tuple[PipelineVersion | None, PipelineVersion]]) -> tuple[SettingChange, ...]:
    """The parameters in which versions differ from others of the same pipelines; those of several pipelines that
    changed alike are one. A pipeline without an old version has none."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for old, new in pairs:
        for name, before, after in _differences(old, new) if old is not None else ():
            found.setdefault((name, before, after), []).append(new.pipeline)
    return tuple(SettingChange(*key, tuple(sorted(pipelines))) for key, pipelines in sorted(found.items()))


def _differences(old: PipelineVersion, new: PipelineVersion) -> Iterator[tuple[str, str, str]]:
    for name in sorted(old.parameters.keys() | new.parameters.keys()):
        before, after = old.parameters.get(name, ""), new.parameters.get(name, "")
        if before != after:
            yield name, before, after


def _dated(connection: Connection, versions: Sequence[PipelineVersion]) -> Iterator[PipelineVersion]:
    """The versions with the starts of their own commits. From 2.11 on, a server shows the creation of the pipeline as
    that of all its versions: only then are its commits read."""
    by_start: dict[tuple[str, datetime], list[PipelineVersion]] = {}
    for each in versions:
        by_start.setdefault((each.pipeline, each.started), []).append(each)
    for (pipeline, _), alike in by_start.items():
        if len(alike) == 1:
            yield alike[0]
            continue
        starts = CommitHistory(connection).version_starts(pipeline)
        for each in alike:
            yield replace(each, started=starts.get(each.id, each.started))


def _version(info: Any) -> PipelineVersion:
    if not info.spec_commit.id:
        raise LookalikeError(f"the server does not tell the versions of {info.pipeline.name}")
    fields = json_format.MessageToDict(info.details)
    transform = fields.get("transform", {})
    parameters = {name: _text(value) for name, value in fields.items() if value and name not in _NOT_SET}
    parameters |= {name: _text(value) for name, value in transform.items() if name != "env"}
    parameters |= transform.get("env", {})
    author, _, doing = info.details.metadata.annotations.get(DEPLOYED_BY, "").partition(": ")
    return PipelineVersion(
        info.pipeline.name,
        info.version,
        info.spec_commit.id,
        info.details.created_at.ToDatetime(tzinfo=UTC),
        parameters,
        info.details.salt,
        author,
        doing,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
