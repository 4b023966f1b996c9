"""Opt-in pipelines on a server: a group deployed where the library's other pipelines run, and deleted again.

Overlays and `--set` of the last deployment are not asked for again: a group's pipelines take over from the deployed
pipelines of the same image, which the server knows, everything that is not as the specifications have it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.checks import suite, variables
from pipelines.client import deployment
from pipelines.client.connection import Connection
from pipelines.client.deployment import ANNOTATION, DEPLOYED_BY, Deployed
from pipelines.client.imagesizes import SPECIFIED
from pipelines.client.jobs import Jobs
from pipelines.client.outages import outlasting
from pipelines.client.repository import Put, Repository
from pipelines.cluster import preflight
from pipelines.errors import LookalikeError
from pipelines.specifications import drafts, optional, own, reading
from pipelines.specifications.drafts import Draft, Patch
from pipelines.specifications.findings import Level
from pipelines.specifications.images import Image
from pipelines.specifications.reading import Spec, leaves

LABELS = "labels"
LABELS_FILE = "/labels.csv"
LABELS_HEADER = b"source,label,name\n"
"""The columns of a file of labels. A cross with an empty repo has no datums, so it gets a file with these alone."""

_PLACE = (
    *("metadata", "resource_requests", "resource_limits", "sidecar_resource_requests", "sidecar_resource_limits"),
    *("scheduling_spec", "tolerations", "pod_spec", "pod_patch", "autoscaling"),
)
"""The fields that say where and with what the workers run."""

_SECRETS = ("image_pull_secrets", "user")
_SHARED = ("METRIC", "BACKEND")
"""The variables that must be those of the search, so that distances mean the same."""

_STAGE = "LOOKALIKE_STAGE"


@dataclass(frozen=True, slots=True)
class Expected:
    """The work of comparing all pictures with each other: their number, that of the segments, and the length of a
    vector."""

    pictures: int
    segments: int
    dimension: int


def expected(connection: Connection) -> Expected:
    """The work for the pictures that are in the index now."""

    def described() -> list[Any]:
        index = Repository(connection, "index").good()
        return [] if index is None else [json.loads(content) for _, content in index.read_all("/*/index.json")]

    read = outlasting(connection, described)
    dimension = max((int(each["dimension"]) for each in read), default=0)
    return Expected(sum(int(each["count"]) for each in read), len(read), dimension)


def deployed(connection: Connection, group: str) -> bool:
    """Whether all pipelines that a group needs are there."""
    there = outlasting(connection, Jobs(connection).pipelines)
    return all(spec.name in there for spec in optional.needed(own.current(), group))


def check(connection: Connection, group: str) -> None:
    """Raises LookalikeError if a group's pipelines cannot be deployed since what they read is not written."""
    there = outlasting(connection, Jobs(connection).pipelines)
    _must_read([spec for spec in optional.needed(own.current(), group) if spec.name not in there], there)


def deploy(connection: Connection, group: str, report: Callable[[Deployed], None] = lambda _: None) -> Sequence[str]:
    """Creates the pipelines that a group needs and that are missing, and the repos that they read; returns the ids of
    the commits whose jobs compute their first output. For `evaluate`, the repo of labels gets a file if it has none.

    Raises LookalikeError, and creates nothing, if the pipelines that they read are missing or of another version, or
    if a check or the server's cluster stands in the way.
    """
    there = Jobs(connection).pipelines()
    missing = [spec for spec in optional.needed(own.current(), group) if spec.name not in there]
    if not missing:
        return []
    _must_read(missing, there)
    base = {draft.name: draft for draft in drafts.find([own.current()]) if not optional.group(draft.path)}
    found = [_as_deployed(drafts.read(spec.path), base, there) for spec in missing]
    _check(connection, found)
    if any(LABELS in spec.repos for spec in missing):
        _ensure_labels(connection)
    done = deployment.deploy(connection, [draft.spec() for draft in found], report)
    jobs = (Jobs(connection).newest(each.name) for each in done if each.kind == "pipeline")
    return list(dict.fromkeys(job.id for job in jobs if job is not None))


def remove(connection: Connection, group: str) -> list[Deployed]:
    """Deletes a group's pipelines and what only they read; returns the outcome for each that is there: deleted, or
    kept for the pipelines that read it."""
    there = Jobs(connection).pipelines()
    done = []
    for spec in reversed(optional.needed(own.current(), group)):
        if spec.name not in there:
            continue
        readers = sorted(name for name, info in there.items() if spec.name in _reads(info))
        if readers:
            done.append(Deployed("pipeline", spec.name, f"kept for {' and '.join(readers)}"))
            continue
        connection.client.delete_pipeline(spec.name, project_name=connection.project)
        del there[spec.name]
        done.append(Deployed("pipeline", spec.name, "deleted"))
    return done


def _reads(info: Any) -> set[str]:
    return {leaf.repo for leaf in leaves(info.details.input)}


def _must_read(specs: Sequence[Spec], there: Mapping[str, Any]) -> None:
    """Raises LookalikeError unless all that the specifications read is written."""
    known = {spec.name for spec in specs} | there.keys() | reading.SOURCES.keys()
    for spec in specs:
        for repo in sorted(spec.repos - known):
            raise LookalikeError(f"{spec.name} reads {repo}, which is not deployed: run `lookalike deploy` first")


def _check(connection: Connection, found: Sequence[Draft]) -> None:
    report = suite.check(found, (), None, drafts.neighbours(found)).of(Level.ERROR)
    report = report.with_more(preflight.look(connection, found, connection.namespace)).of(Level.ERROR)
    for finding in report.findings:
        fix = f": {finding.flaw.fix}" if finding.flaw.fix else ""
        raise LookalikeError(f"{finding.pipeline or 'the pipelines'}: {finding.place}: {finding.flaw.why}{fix}")


def _ensure_labels(connection: Connection) -> None:
    deployment.make_repo(connection, LABELS)
    repository = Repository(connection, LABELS)
    if not repository.exists("/"):
        repository.write([Put(LABELS_FILE, LABELS_HEADER)])


def _as_deployed(draft: Draft, base: Mapping[str, Draft], there: Mapping[str, Any]) -> Draft:
    """An opt-in specification with the differences that the deployed pipelines of the same image have from theirs.

    Raises LookalikeError if one of these runs the stage of another version of lookalike: its image then lacks ours.
    """
    image = Image.parse(draft.get("transform", "image", default=""))
    for name in reversed([*base]):
        written, info = base[name], there.get(name)
        if info is None or image is None or not _is_like(written, draft):
            continue
        stated, runs = written.get("transform", "env", default={}).get(_STAGE), info.details.transform.env.get(_STAGE)
        if stated != runs:
            raise LookalikeError(
                f"{name} was deployed by another version of lookalike ({runs}, not {stated}): run `lookalike deploy` "
                "first"
            )
        return _with_threshold(draft, draft.patched(Patch(_difference(written, info.details))))
    return draft


def _with_threshold(written: Draft, draft: Draft) -> Draft:
    """The specification with THRESHOLD in the units of its metric, if that is cosine and it was written for euclidean
    distances of vectors of length 1."""
    at = ("transform", "env")
    before, metric = (each.get(*at, "METRIC", default="") for each in (written, draft))
    threshold = draft.get(*at, "THRESHOLD", default="")
    if (before, metric) != ("euclidean", "cosine") or not threshold:
        return draft
    return draft.patched(Patch({"transform": {"env": {"THRESHOLD": variables.cosine(float(threshold))}}}))


def _is_like(written: Draft, draft: Draft) -> bool:
    """Whether two specifications have the same image, and both or neither have GPUs."""
    at = ("transform", "image"), ("resource_limits", "gpu", "number")
    return written.get(*at[0]) == draft.get(*at[0]) and bool(written.number(*at[1])) == bool(draft.number(*at[1]))


def _difference(written: Draft, details: Any) -> dict[str, Any]:
    """The merge patch that turns the specification's place into the deployed pipeline's."""
    stated = pps_pb2.CreatePipelineRequest()
    json_format.ParseDict(dict(written.document), stated, ignore_unknown_fields=True)
    running = pps_pb2.CreatePipelineRequest()
    json_format.ParseDict(json_format.MessageToDict(details), running, ignore_unknown_fields=True)
    for name in (ANNOTATION, DEPLOYED_BY, SPECIFIED):
        running.metadata.annotations.pop(name, None)
    before, after = _place(stated), _place(running)
    return _patch(before, after)


def _place(request: Any) -> dict[str, Any]:
    """The fields of a request that say where and with what it runs."""
    document = json_format.MessageToDict(request, preserving_proto_field_name=True)
    transform = document.get("transform", {})
    place = {name: document[name] for name in _PLACE if document.get(name)}
    inner = {name: transform[name] for name in ("image", *_SECRETS) if name in transform}
    inner["env"] = {name: value for name, value in transform.get("env", {}).items() if name in _SHARED}
    return {**place, "transform": inner}


def _patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch (RFC 7396) from one object to another."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            inner = _patch(old, value)
            if inner:
                patch[name] = inner
        elif old != value:
            patch[name] = value
    return patch
