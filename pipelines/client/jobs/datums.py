"""The datums of a job, and the reasons for which some of them failed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grpc
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.jobs.jobs import Job
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection


@dataclass(frozen=True, slots=True)
class Datum:
    """A datum of a job: its id, its state in lower case, the paths of its inputs, and the seconds of its processing,
    None where it was not processed."""

    id: str
    state: str
    paths: tuple[str, ...]
    seconds: float | None


@dataclass(frozen=True, slots=True)
class DatumFailure:
    """A failed datum: its id, the paths of its inputs, and the reason."""

    datum: str
    paths: tuple[str, ...]
    reason: str


class JobDatums:
    """The datums of one job."""

    def __init__(self, connection: Connection, job: Job) -> None:
        self._stub = connection.pps
        self._meta = Repository(connection, job.pipeline, job.id, type_="meta")
        self._job = connection.job(job.pipeline, job.id)

    def __iter__(self) -> Iterator[Datum]:
        return map(_datum, self._stub.ListDatum(pps_pb2.ListDatumRequest(job=self._job)))

    def failed(self, most: int) -> list[DatumFailure]:
        """The failed datums, at most `most` of them, with their reasons. The job's own reason only names the first
        one."""
        chosen = pps_pb2.ListDatumRequest.Filter(state=[pps_pb2.FAILED])
        request = pps_pb2.ListDatumRequest(job=self._job, filter=chosen, number=most)
        return [
            DatumFailure(info.datum.id, tuple(data.file.path for data in info.data), self.reason(info.datum.id))
            for info in self._stub.ListDatum(request)
        ]

    def reason(self, datum: str) -> str:
        """The reason for which a datum failed, from the pipeline's meta commit; "" if it did not fail."""
        try:
            record = json.loads(self._meta.read(f"/meta/{datum}/meta"))
        except (grpc.RpcError, ValueError):
            return f"the pipeline's meta commit does not record the reason; see `lookalike logs {self._meta.name}`"
        if "state" not in record:  # PROCESSED is the default, which JSON leaves out
            return ""
        return str(record.get("reason") or "no reason was recorded")


def _datum(info: Any) -> Datum:
    timed = info.stats.HasField("process_time")
    return Datum(
        id=info.datum.id,
        state=pps_pb2.DatumState.Name(info.state).lower(),
        paths=tuple(data.file.path for data in info.data),
        seconds=info.stats.process_time.ToNanoseconds() / 1e9 if timed else None,
    )
