"""A line of a log as JSON, with the names of protojson, as Pachyderm's workers write it."""

import base64
import time
from typing import Any

from localpachd.pps.pps_entities import LogMessage

_SECOND = 1_000_000_000


def as_json(line: LogMessage) -> dict[str, Any]:
    """The fields of a line that are set, its time and its level."""
    fields: dict[str, Any] = {
        "severity": line.level.name.lower(),
        "ts": _rfc3339(line.ts),
        "message": line.message,
        "projectName": line.pipeline.project if line.pipeline else "",
        "pipelineName": line.pipeline.name if line.pipeline else "",
        "jobId": line.job,
        "workerId": line.worker,
        "datumId": line.datum,
        "master": line.master,
        "user": line.user,
        "data": [{"path": path, "hash": base64.b64encode(digest).decode()} for path, digest in line.data],
    }
    return {name: value for name, value in fields.items() if value or name == "message"}


def _rfc3339(moment: int) -> str:
    seconds, nanos = divmod(moment, _SECOND)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{nanos:09d}Z"
