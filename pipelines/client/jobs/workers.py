"""The workers of a job, with what they write into its log: how far a datum has come, attempts that failed, and GPUs
that they do not use."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration
from python_pachyderm.proto.v2.pps import pps_pb2

from stages.datum import visible_gpus

_LATELY = 20
"""Seconds for which lines of a log are read: stages note their progress more often."""

_LAST = 10_000
"""Lines of a job's log, from its end, in which notices of GPUs are sought."""

_MOST_NOTICES = 3

_PROGRESS = re.compile(r"\s*(\d+)(?: of (\d+) (\w+)| (\w+) so far)")
_FAILED_ATTEMPT = re.compile(r"errored running user code after ([\d.a-zµ]+): (.*)", re.DOTALL)
_DURATION = re.compile(r"([\d.]+)([a-zµ]+)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
_KILLED = "signal: killed"
_ENDED = "signal: killed because context canceled"
"""Pachyderm says this of every batching process that it ends after the last datum of its set."""


@dataclass(frozen=True, slots=True)
class DatumProgress:
    """The progress within a datum: `done` of `total` of its `unit`, such as "pictures"; 0 for an unknown total."""

    done: int
    total: int
    unit: str


@dataclass(frozen=True, slots=True)
class BusyWorker:
    """A worker that is busy with a datum: the paths of the datum's inputs, none if the worker is between two datums,
    the seconds since it took the datum, and the progress within it, if the stage notes that."""

    paths: tuple[str, ...]
    seconds: float
    progress: DatumProgress | None = None


def read(stub: Any, job: Any, status: Iterable[Any]) -> tuple[tuple[BusyWorker, ...], tuple[str, ...]]:
    """The busy workers of a job, given their WorkerStatus messages, and the attempts that failed lately, in words."""
    statuses = list(status)
    lines = list(_lines(stub, pps_pb2.GetLogsRequest(job=job, since=Duration(seconds=_LATELY)))) if statuses else []
    return tuple(_busy(each, lines) for each in statuses), tuple(_failed_attempts(lines))


def on_gpus(stub: Any, job: Any) -> tuple[str, ...]:
    """The first different notices of a job's workers on GPUs that they do not use, or not as they were meant to."""
    found: dict[str, None] = {}
    for line in _lines(stub, pps_pb2.GetLogsRequest(job=job, tail=_LAST)):
        said = visible_gpus.notice_text(line.message) if line.user else None
        if said is not None:
            found[said] = None
    return tuple(found)[:_MOST_NOTICES]


def _lines(stub: Any, request: Any) -> Iterator[Any]:
    try:
        yield from stub.GetLogs(request)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.UNAVAILABLE:
            raise
        # A cluster's logs are in the pods, which may be gone: then this much is unknown.


def _busy(status: Any, lines: Sequence[Any]) -> BusyWorker:
    datum = status.datum_status
    began = datum.started.ToNanoseconds() if datum.HasField("started") else 0
    since = (time.time_ns() - began) / 1e9 if began else 0.0
    found = None
    for line in lines:
        if line.user and line.worker_id == status.worker_id and began and line.ts.ToNanoseconds() >= began:
            found = _progress(line.message) or found
    return BusyWorker(tuple(each.path for each in datum.data), max(0.0, since), found)


def _progress(text: str) -> DatumProgress | None:
    found = _PROGRESS.fullmatch(text.rstrip())
    if found is None:
        return None
    done, total = int(found[1]), int(found[2] or 0)
    return None if total and done > total else DatumProgress(done, total, found[3] or found[4])


def _failed_attempts(lines: Iterable[Any]) -> Iterator[str]:
    for line in lines:
        found = None if line.user else _FAILED_ATTEMPT.match(line.message)
        if found is not None and not found[2].startswith(_ENDED):
            reason = " ".join(found[2].split())
            if _KILLED in reason:
                reason = f"{reason} (the machine may lack memory)"
            of = ", ".join(each.path for each in line.data)
            yield f"an attempt{' at ' if of else ''}{of} failed after {_seconds(found[1]):.0f} s: {reason}"


def _seconds(duration: str) -> float:
    """A duration as Go writes it, such as 1m2.5s."""
    return sum(float(number) * _UNITS.get(unit, 0.0) for number, unit in _DURATION.findall(duration))
