"""The record of a datum, as Pachyderm keeps it in the meta commit of a pipeline: a file of JSON. Knows no server."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_PROCESSED = "processed"


@dataclass(frozen=True, slots=True)
class DatumInput:
    """An input of a datum: the file or directory as it was when the datum was processed."""

    name: str
    repo: str
    path: str
    commit: str
    hash: str


@dataclass(frozen=True, slots=True)
class DatumRecord:
    """What was recorded when a datum was processed: the id of that job, the inputs, "processed", "failed" or
    "recovered", and the seconds of its parts, None where they were not recorded."""

    job: str
    inputs: tuple[DatumInput, ...]
    state: str
    download: float | None
    process: float | None
    upload: float | None


def parse(content: bytes) -> DatumRecord:
    """The record in a file. Raises ValueError, KeyError or TypeError for another version's."""
    meta = json.loads(content)
    stats = meta.get("stats") or {}
    return DatumRecord(
        job=meta["job"]["id"],
        inputs=tuple(map(_consumed, meta.get("inputs", ()))),
        state=str(meta.get("state", _PROCESSED)).lower(),  # JSON leaves out the default
        download=_seconds(stats.get("downloadTime")),
        process=_seconds(stats.get("processTime")),
        upload=_seconds(stats.get("uploadTime")),
    )


def _consumed(given: Mapping[str, Any]) -> DatumInput:
    info = given["fileInfo"]
    file = info["file"]
    commit = file["commit"]
    repo = (commit.get("repo") or commit["branch"]["repo"])["name"]
    hash_ = base64.b64decode(info.get("hash", "")).hex()
    return DatumInput(given.get("name", ""), repo, file["path"], commit["id"], hash_)


def _seconds(text: str | None) -> float | None:
    return float(text.removesuffix("s")) if text else None
