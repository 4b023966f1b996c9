"""The `logs.API` service, and lines of logs: as LogMessages, encoded by hand since logs are long, and as JSON like that
of Pachyderm's workers."""

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from localpachd.api.calls.handlers import lists
from localpachd.api.messages import pps_messages as messages
from localpachd.api.messages.times import nanoseconds, timestamp
from localpachd.api.schema.schema import logs_pb2, pps_pb2
from localpachd.api.schema.wire_format import BYTES, VARINT, key, varint
from localpachd.errors import Unimplemented
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps.log_queries import LogSearch, search
from localpachd.pps.pps_entities import LogLevel, LogMessage
from speclang.names import DEFAULT_PROJECT

_MOST = (1 << 63) - 1
"""The largest number that the database can count with."""
_LEVELS = {each.value: each for each in LogLevel}

_SECOND = 1_000_000_000


class LogsServicer:
    """`logs.API`, without paging hints and without logs of pods: a search by pod, application or LogQL is refused."""

    def __init__(self, pfs: PfsService) -> None:
        self._db = pfs.db

    @lists
    def GetLogs(self, request: logs_pb2.GetLogsRequest) -> Iterator[logs_pb2.GetLogsResponse]:
        wanted = _search(request)
        with self._db.read() as conn:
            yield from map(_response, search(conn, wanted))


def _response(line: LogMessage) -> logs_pb2.GetLogsResponse:
    fields = as_json(line)
    moment = timestamp(line.ts)
    found = logs_pb2.LogMessage(
        verbatim=logs_pb2.VerbatimLogMessage(
            line=json.dumps(fields, ensure_ascii=False).encode(errors="surrogateescape"), timestamp=moment
        ),
        native_timestamp=moment,
        pps_log_message=messages.log_message(line),
    )
    found.object.update(fields)
    return logs_pb2.GetLogsResponse(log=found)


def _search(request: logs_pb2.GetLogsRequest) -> LogSearch:
    chosen = request.filter
    times = chosen.time_range
    return replace(
        _subject(request.query),
        user_only=chosen.user_logs_only,
        start=nanoseconds(getattr(times, "from")) if times.HasField("from") else None,
        end=nanoseconds(times.until) if times.HasField("until") else None,
        offset=min(times.offset, _MOST),
        most=min(chosen.limit, _MOST),
        pattern=chosen.regex.pattern,
        negate=chosen.regex.negate,
        level=_LEVELS.get(chosen.level, LogLevel.DEBUG),
    )


def _subject(query: logs_pb2.LogQuery) -> LogSearch:
    """The search for everything about the subject of a query."""
    if not query.HasField("admin"):
        return _of_user(query.user)
    admin = query.admin
    if admin.HasField("user"):
        return _of_user(admin.user)
    if admin.HasField("master"):
        return replace(_of_pipeline(admin.master), master=True)
    raise Unimplemented(
        "localpachd has neither pods nor Loki: search the logs of a project, a pipeline, a job or a datum"
    )


def _of_user(user: logs_pb2.UserLogQuery) -> LogSearch:
    if user.HasField("pipeline"):
        return _of_pipeline(user.pipeline)
    if user.HasField("pipeline_job"):
        return replace(_of_pipeline(user.pipeline_job.pipeline), job=user.pipeline_job.job)
    if user.HasField("pipeline_datum"):
        return replace(_of_pipeline(user.pipeline_datum.pipeline), datum=user.pipeline_datum.datum)
    if user.HasField("job_datum"):
        return LogSearch(job=user.job_datum.job, datum=user.job_datum.datum)
    return LogSearch(project=user.project, job=user.job, datum=user.datum)


def _of_pipeline(named: logs_pb2.PipelineLogQuery) -> LogSearch:
    return LogSearch(project=named.project or DEFAULT_PROJECT, pipeline=named.pipeline)


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
