"""The `logs.API` service: searches the logs of pipelines."""

import json
from collections.abc import Iterator
from dataclasses import replace

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.calls.handlers import lists
from localpachd.api.messages import pps_messages as messages
from localpachd.api.messages.times import nanoseconds, timestamp
from localpachd.api.pps import log_lines
from localpachd.api.schema.schema import logs_pb2
from localpachd.errors import Unimplemented
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps.log_queries import LogSearch, search
from localpachd.pps.pps_entities import LogLevel, LogMessage
from speclang.names import DEFAULT_PROJECT

_MOST = (1 << 63) - 1
"""The largest number that the database can count with."""
_LEVELS = {each.value: each for each in LogLevel}


class LogsServicer:
    """`logs.API`, without paging hints and without logs of pods: a search by pod, application or LogQL is refused."""

    def __init__(self, pfs: PfsService) -> None:
        self._db = pfs.db

    @lists
    def GetLogs(self, request: logs_pb2.GetLogsRequest, context: CallContext) -> Iterator[logs_pb2.GetLogsResponse]:
        wanted = _search(request)
        with self._db.read() as conn:
            yield from map(_response, search(conn, wanted))


def _response(line: LogMessage) -> logs_pb2.GetLogsResponse:
    fields = log_lines.as_json(line)
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
