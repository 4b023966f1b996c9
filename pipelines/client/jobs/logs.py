"""The lines that user code and workers have written to the logs of pipelines."""

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import grpc
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line: its time (UTC), its pipeline, job and datum ("" for none), the paths of the datum's inputs, and whether
    user code wrote it, not the worker."""

    time: datetime
    pipeline: str
    job: str
    datum: str
    paths: tuple[str, ...]
    user: bool
    message: str


@dataclass(frozen=True, slots=True)
class LogFilter:
    """The lines that are wanted: of these pipelines; of one job, or "" for any; of the datums with an input of this
    path or an id that begins like this, or "" for any; of user code alone."""

    pipelines: Sequence[str]
    job: str = ""
    datum: str = ""
    user_only: bool = True

    def holds(self, line: LogLine) -> bool:
        """Whether a line of one of the pipelines and of the job is among these."""
        if self.user_only and not line.user:
            return False
        return not self.datum or self.datum in line.paths or line.datum.startswith(self.datum)


_NO_WORKERS = re.compile("no pods belonging to the rc .* were found")
"""Pachyderm's words where no worker of a pipeline runs and Loki keeps no logs."""


def _unreadable(error: grpc.RpcError) -> str:
    if _NO_WORKERS.search(str(error.details())):
        return (
            "no worker of it runs now, and a cluster without Loki keeps no logs of workers that have ended: ask again "
            "while a job runs, or install Loki with Pachyderm's chart"
        )
    return str(error.details())


class PipelineLogs:
    """The logs of one project's pipelines."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def last(self, choice: LogFilter, most: int) -> tuple[list[LogLine], dict[str, str]]:
        """The last lines of a choice, at most `most`, oldest first; and the reasons for which the logs of pipelines
        cannot be read: a cluster's are in their pods, unless it keeps them."""
        unreadable: dict[str, str] = {}

        def lines() -> Iterator[LogLine]:
            for pipeline in choice.pipelines:
                try:
                    yield from self._lines(pipeline, choice)
                except grpc.RpcError as error:
                    if error.code() == grpc.StatusCode.UNAVAILABLE:
                        raise
                    unreadable[pipeline] = _unreadable(error)

        newest = heapq.nlargest(most, enumerate(lines()), key=_order)
        return [line for _, line in sorted(newest, key=_order)], unreadable

    def follow(self, choice: LogFilter) -> Iterator[LogLine]:
        """Every line of a choice of one pipeline, those to come too, until the pipeline is deleted."""
        (pipeline,) = choice.pipelines
        try:
            yield from self._lines(pipeline, choice, follow=True)
        except grpc.RpcError as error:
            if _NO_WORKERS.search(str(error.details())):
                raise LookalikeError(f"the log of {pipeline} cannot be read: {_unreadable(error)}") from error
            raise

    def _lines(self, pipeline: str, choice: LogFilter, follow: bool = False) -> Iterator[LogLine]:
        request = pps_pb2.GetLogsRequest(follow=follow)
        if choice.job:
            request.job.CopyFrom(self._connection.job(pipeline, choice.job))
        else:
            request.pipeline.CopyFrom(self._connection.pipeline(pipeline))
        return (line for line in map(_line, self._connection.pps.GetLogs(request)) if choice.holds(line))


def _order(numbered: tuple[int, LogLine]) -> tuple[datetime, int]:
    """By time; lines of one moment in the order in which the server gives them."""
    return numbered[1].time, numbered[0]


def _line(message: Any) -> LogLine:
    return LogLine(
        time=message.ts.ToDatetime(tzinfo=UTC),
        pipeline=message.pipeline_name,
        job=message.job_id,
        datum=message.datum_id,
        paths=tuple(each.path for each in message.data),
        user=message.user,
        message=message.message.rstrip("\n"),
    )
