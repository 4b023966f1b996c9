"""The record of a datum in the meta commit, as protojson of Pachyderm's `datum.Meta`. Knows no commits.

It is written to `/meta/<datum id>/meta`, as by Pachyderm, so that one reader finds a failed datum's reason on both.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localpachd.pps.datums import DatumInput
from localpachd.pps.pps_entities import Job, Pipeline
from localpachd.worker.tasks import DatumOutcome, DatumStats

META_ROOT = "/meta/"
_FLAGS = (("outerJoin", "outer_join"), ("lazy", "lazy"), ("emptyFiles", "empty_files"), ("s3", "s3"))


@dataclass(frozen=True, slots=True)
class DatumRecord:
    """The result of one datum, with the job that processed it and the hash that it had."""

    id: str
    job: Job
    inputs: tuple[DatumInput, ...]
    hash: str
    outcome: DatumOutcome
    reason: str
    stats: DatumStats
    index: int


def meta_path(identity: str) -> str:
    """The path of a datum's record in the meta commit."""
    return f"{META_ROOT}{identity}/meta"


def pfs_path(identity: str) -> str:
    """The directory of the meta commit with a datum's inputs, output and environment, without a trailing slash."""
    return f"/pfs/{identity}"


def encode(record: DatumRecord) -> bytes:
    """The record as protojson: defaults left out, 64-bit integers as strings, bytes in base64."""
    message: dict[str, Any] = {
        "job": {"pipeline": _pipeline(record.job.pipeline), "id": record.job.id},
        "inputs": [_input(each) for each in record.inputs],
        "hash": record.hash,
        "state": "" if record.outcome is DatumOutcome.PROCESSED else record.outcome,
        "reason": record.reason,
        "stats": _stats(record.stats),
        "index": str(record.index) if record.index else "",
    }
    return json.dumps(_without_defaults(message), separators=(",", ":")).encode()


def outcome(message: Mapping[str, Any]) -> DatumOutcome:
    return DatumOutcome(message.get("state", DatumOutcome.PROCESSED))


def decode(identity: str, data: bytes) -> DatumRecord:
    """The record in a meta file that `encode` wrote."""
    message = json.loads(data)
    job = message["job"]
    return DatumRecord(
        id=identity,
        job=Job(Pipeline(job["pipeline"]["project"]["name"], job["pipeline"]["name"]), job["id"]),
        inputs=tuple(_input_of(each) for each in message.get("inputs", ())),
        hash=message["hash"],
        outcome=outcome(message),
        reason=message.get("reason", ""),
        stats=_stats_of(message.get("stats", {})),
        index=int(message.get("index", 0)),
    )


def _pipeline(pipeline: Pipeline) -> dict[str, Any]:
    return {"project": {"name": pipeline.project}, "name": pipeline.name}


def _input(each: DatumInput) -> dict[str, Any]:
    repo = {"name": each.repo, "type": each.repo_type, "project": {"name": each.project}}
    commit = {"repo": repo, "id": each.commit, "branch": {"repo": repo, "name": each.branch}}
    message: dict[str, Any] = {
        "fileInfo": {
            "file": {"commit": commit, "path": each.path},
            "fileType": "DIR" if each.path.endswith("/") else "FILE",
            "sizeBytes": str(each.size) if each.size else "",
            "hash": base64.b64encode(each.hash).decode(),
        },
        "name": each.name,
        "joinOn": each.join_on,
        "groupBy": each.group_by,
        "branch": each.branch,
    }
    message.update((key, getattr(each, name)) for key, name in _FLAGS)
    message["fileInfo"] = _without_defaults(message["fileInfo"])
    return _without_defaults(message)


def _input_of(message: Mapping[str, Any]) -> DatumInput:
    info = message["fileInfo"]
    commit = info["file"]["commit"]
    flags = {name: bool(message.get(key)) for key, name in _FLAGS}
    return DatumInput(
        name=message["name"],
        project=commit["repo"]["project"]["name"],
        repo=commit["repo"]["name"],
        repo_type=commit["repo"]["type"],
        branch=message.get("branch", ""),
        path=info["file"]["path"],
        hash=base64.b64decode(info.get("hash", "")),
        size=int(info.get("sizeBytes", 0)),
        commit=commit["id"],
        join_on=message.get("joinOn", ""),
        group_by=message.get("groupBy", ""),
        **flags,
    )


def _stats(stats: DatumStats) -> dict[str, Any]:
    return _without_defaults(
        {
            "downloadTime": _duration(stats.download_time),
            "processTime": _duration(stats.process_time),
            "uploadTime": _duration(stats.upload_time),
            "downloadBytes": str(stats.download_bytes) if stats.download_bytes else "",
            "uploadBytes": str(stats.upload_bytes) if stats.upload_bytes else "",
        }
    )


def _stats_of(message: Mapping[str, Any]) -> DatumStats:
    return DatumStats(
        download_time=_seconds(message.get("downloadTime", "0s")),
        process_time=_seconds(message.get("processTime", "0s")),
        upload_time=_seconds(message.get("uploadTime", "0s")),
        download_bytes=int(message.get("downloadBytes", 0)),
        upload_bytes=int(message.get("uploadBytes", 0)),
    )


def _duration(seconds: float) -> str:
    return f"{seconds:.9f}s"


def _seconds(text: str) -> float:
    return float(text.removesuffix("s"))


def _without_defaults(message: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if value not in ("", False, None) and value != []}
