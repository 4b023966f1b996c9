"""A pipeline's specification: its defaults, its typed form, and its form in the database.

Specifications arrive as CreatePipelineRequests in protojson with snake_case names; this module knows no protobuf.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from localpachd import ids
from localpachd.errors import PachError
from localpachd.pps.specs import inputs, validation
from localpachd.worker.tasks import SecretUse, Task
from speclang import quantities, warm_annotations
from speclang.names import DEFAULT_PROJECT

DEFAULT_IMAGE = "ubuntu:20.04"
DEFAULT_TRIES = 3
EVERY_JOB = "every_job"
# Fields of the request that are not part of the pipeline.
_ORDERS = ("update", "reprocess", "spec_commit", "dry_run", "details_json")


@dataclass(frozen=True, slots=True)
class DatumSetSpec:
    """Limits of a datum set: datums, input bytes, or sets for each worker; 0 means not given."""

    number: int = 0
    size_bytes: int = 0
    per_worker: int = 0


class PipelineKind(StrEnum):
    """The kind of a pipeline by the name that `pps.proto` gives it."""

    TRANSFORM = "PIPELINE_TYPE_TRANSFORM"
    SPOUT = "PIPELINE_TYPE_SPOUT"
    SERVICE = "PIPELINE_TYPE_SERVICE"


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """The port that a command listens on, and the port for access from outside, 0 for any."""

    internal_port: int
    external_port: int


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """A checked specification. Timeouts in seconds; `raw` is the request in protojson with every default filled in."""

    task: Task
    """What a worker runs for each datum set, without its pod."""
    input: inputs.Input | None
    output_branch: str
    parallelism: int
    datum_set: DatumSetSpec
    job_timeout: float | None
    autoscaling: bool
    reprocess_every_job: bool
    salt: str
    kind: PipelineKind
    service: ServiceSpec | None
    """Set for services, and for spouts that are also services."""
    egress: str
    """The URL that the output is copied to when a job's datums are done; "" for none."""
    raw: Mapping[str, Any]

    def to_json(self) -> str:
        """The text kept in the database; `from_json` reads it back."""
        return json.dumps(dict(self.raw), sort_keys=True)


def parse(request: Mapping[str, Any], now: int, previous: PipelineSpec | None = None) -> PipelineSpec:
    """The specification that a CreatePipelineRequest asks for.

    `now` is in nanoseconds since the epoch. `previous` is the version being updated: its salt stays, so that datums
    stay skippable, unless the request says `reprocess`. Raises PachError with Pachyderm's text for what Pachyderm
    refuses, Unimplemented for what only a cluster can run.
    """
    if "pipeline" not in request:
        raise PachError("request.Pipeline cannot be nil")
    raw: dict[str, Any] = copy.deepcopy({key: value for key, value in request.items() if key not in _ORDERS})
    project = raw["pipeline"].setdefault("project", {})
    if not project.get("name"):
        project["name"] = DEFAULT_PROJECT
    validation.check_request(raw)
    raw["salt"] = _salt(request, previous)
    _fill(raw, now)
    validation.check_final(raw)
    return _typed(raw)


@lru_cache(maxsize=256)
def from_json(text: str) -> PipelineSpec:
    """The specification that `to_json` wrote. Cached."""
    return _typed(json.loads(text))


def input_of(raw: Mapping[str, Any], now: int) -> inputs.Input:
    """The checked input of a ListDatum request, with its defaults."""
    tree = inputs.with_defaults(raw, "", DEFAULT_PROJECT, _rfc3339(now))
    validation.check_input(tree)
    parsed = inputs.parse(tree)
    if any(isinstance(leaf, inputs.CronInput) for leaf in inputs.leaves(parsed)):
        raise PachError("can't list datums with a cron input, there will be no datums until the pipeline is created")
    return parsed


def _salt(request: Mapping[str, Any], previous: PipelineSpec | None) -> str:
    if request.get("reprocess"):
        return ids.new_id()
    if previous is not None:
        return previous.salt
    return str(request.get("salt") or ids.new_id())


def _fill(raw: dict[str, Any], now: int) -> None:
    name, project = raw["pipeline"]["name"], raw["pipeline"]["project"]["name"]
    if not raw["transform"].get("image"):
        raw["transform"]["image"] = DEFAULT_IMAGE
    if "input" in raw:
        raw["input"] = inputs.with_defaults(raw["input"], name, project, _rfc3339(now))
    for key, default in (
        ("output_branch", "master"),
        ("datum_tries", str(DEFAULT_TRIES)),
        ("reprocess_spec", "until_success"),
    ):
        if raw.get(key) in (None, "", "0", 0):
            raw[key] = default
    for holder in (raw, raw.get("spout", {})):
        if "service" in holder and not holder["service"].get("type"):
            holder["service"]["type"] = "NodePort"


def _typed(raw: Mapping[str, Any]) -> PipelineSpec:
    sets = raw.get("datum_set_spec", {})
    return PipelineSpec(
        task=_task(raw),
        input=inputs.parse(raw["input"]) if "input" in raw else None,
        output_branch=raw["output_branch"],
        parallelism=int(raw.get("parallelism_spec", {}).get("constant", 0)) or 1,
        datum_set=DatumSetSpec(*(int(sets.get(key, 0)) for key in ("number", "size_bytes", "per_worker"))),
        job_timeout=_seconds(raw.get("job_timeout")),
        autoscaling=bool(raw.get("autoscaling")),
        reprocess_every_job=raw["reprocess_spec"] == EVERY_JOB,
        salt=raw["salt"],
        kind=PipelineKind.SPOUT
        if "spout" in raw
        else PipelineKind.SERVICE
        if "service" in raw
        else PipelineKind.TRANSFORM,
        service=_service(raw),
        egress=validation.egress_url(raw),
        raw=MappingProxyType(dict(raw)),
    )


def _task(raw: Mapping[str, Any]) -> Task:
    transform, limits = raw["transform"], raw.get("resource_limits", {})
    return Task(
        cmd=tuple(transform.get("cmd", ())),
        stdin=tuple(transform.get("stdin", ())),
        err_cmd=tuple(transform.get("err_cmd", ())),
        err_stdin=tuple(transform.get("err_stdin", ())),
        env=dict(transform.get("env", {})),
        accept_return_code=frozenset(int(code) for code in transform.get("accept_return_code", ())),
        batching=bool(transform.get("datum_batching")),
        tries=max(1, int(raw["datum_tries"])),
        datum_timeout=_seconds(raw.get("datum_timeout")),
        working_dir=transform.get("working_dir", ""),
        user=transform.get("user", ""),
        gpus=_gpus(raw),
        image=transform["image"],
        memory=int(quantities.parse(limits.get("memory", "")) or 0),
        cpus=float(limits.get("cpu", 0)),
        secrets=tuple(SecretUse(**use) for use in transform.get("secrets", ())),
        warm=warm_annotations.read(raw.get("metadata", {}).get("annotations", {})),
    )


def _service(raw: Mapping[str, Any]) -> ServiceSpec | None:
    found = raw.get("service") or raw.get("spout", {}).get("service")
    return ServiceSpec(int(found.get("internal_port", 0)), int(found.get("external_port", 0))) if found else None


def _gpus(raw: Mapping[str, Any]) -> int:
    """GPUs of one worker. Kubernetes uses the limit as the request, and refuses a request without a limit."""
    for key in ("resource_limits", "resource_requests"):
        number = int(raw.get(key, {}).get("gpu", {}).get("number", 0))
        if number:
            return number
    return 0


def _seconds(text: str | None) -> float | None:
    """The seconds of a protojson Duration ("1.5s"); None if it is missing or zero, which means no limit."""
    return float(text.removesuffix("s")) or None if text else None


def _rfc3339(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
