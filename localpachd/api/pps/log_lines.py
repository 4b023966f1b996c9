"""Lines of logs: as LogMessages, encoded by hand since logs are long, and as JSON like that of Pachyderm's workers."""

import base64
import time
from typing import Any

from localpachd.api.schema.schema import pps_pb2
from localpachd.api.schema.wire_format import BYTES, VARINT, key, varint
from localpachd.pps.pps_entities import LogMessage

_SECOND = 1_000_000_000


class LogLines:
    """Encodes lines one after another. Lines of one datum share most fields, which are encoded once."""

    def __init__(self) -> None:
        self._shared: object = None
        self._before = self._after = b""
        self._second = -1
        self._seconds = b""

    def encoded(self, line: LogMessage) -> bytes:
        """The message of a line as bytes."""
        shared = (line.pipeline, line.job, line.worker, line.datum, line.data, line.user, line.master)
        if shared != self._shared:
            self._shared = shared
            self._before, self._after = _before(line), _after(line)
        second, nanos = divmod(line.ts, _SECOND)
        if second != self._second:
            self._second = second
            self._seconds = _SECONDS + varint(second) if second else b""
        moment = self._seconds + _NANOS + varint(nanos) if nanos else self._seconds
        text = line.message.encode()
        return b"".join(
            (
                self._before,
                _TS, varint(len(moment)), moment,
                _MESSAGE + varint(len(text)) + text if text else b"",
                self._after,
            )
        )  # fmt: skip


def _before(line: LogMessage) -> bytes:
    """The fields with numbers below that of the time: pipeline, job, worker, datum, master, data, user."""
    name = line.pipeline.name if line.pipeline else ""
    parts = [_text(_PIPELINE, name), _text(_JOB, line.job), _text(_WORKER, line.worker), _text(_DATUM, line.datum)]
    parts.append(_MASTER if line.master else b"")
    for path, digest in line.data:
        file = _text(_PATH, path) + (_HASH + varint(len(digest)) + digest if digest else b"")
        parts += (_DATA, varint(len(file)), file)
    parts.append(_USER if line.user else b"")
    return b"".join(parts)


def _after(line: LogMessage) -> bytes:
    return _text(_PROJECT, line.pipeline.project) if line.pipeline else b""


def _text(field: bytes, text: str) -> bytes:
    data = text.encode()
    return field + varint(len(data)) + data if data else b""


_fields = pps_pb2.LogMessage.DESCRIPTOR.fields_by_name
_PIPELINE, _JOB, _WORKER, _DATUM, _DATA, _TS, _MESSAGE, _PROJECT = (
    key(_fields[name], BYTES)
    for name in ("pipeline_name", "job_id", "worker_id", "datum_id", "data", "ts", "message", "project_name")
)
_MASTER, _USER = (key(_fields[name], VARINT) + varint(1) for name in ("master", "user"))
_file = pps_pb2.InputFile.DESCRIPTOR.fields_by_name
_PATH, _HASH = key(_file["path"], BYTES), key(_file["hash"], BYTES)
_time = _fields["ts"].message_type.fields_by_name
_SECONDS, _NANOS = key(_time["seconds"], VARINT), key(_time["nanos"], VARINT)


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
