"""Watching jobs: what each pipeline's job of a commit set is doing, until all of them have ended."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

from pipelines.connection import Connection
from pipelines.repository import Repository

_LOOK_EVERY = 0.25
"""Seconds between two looks at running jobs: Pachyderm tells of progress only when asked."""

_ENDED = frozenset({"success", "failure", "killed", "unrunnable"})


@dataclass(frozen=True, slots=True)
class Job:
    """A pipeline's job: `state` in lower case without Pachyderm's prefix, counts of datums, `seconds` of running (None
    before it started)."""

    pipeline: str
    id: str
    state: str
    processed: int
    skipped: int
    failed: int
    total: int
    seconds: float | None
    reason: str

    @property
    def ended(self) -> bool:
        return self.state in _ENDED

    @property
    def done(self) -> int:
        """Datums that need no more work."""
        return self.processed + self.skipped + self.failed


def job(info: Any) -> Job:
    """The value of a JobInfo."""
    return Job(
        pipeline=info.job.pipeline.name,
        id=info.job.id,
        state=pps_pb2.JobState.Name(info.state).removeprefix("JOB_").lower(),
        processed=info.data_processed + info.data_recovered,
        skipped=info.data_skipped,
        failed=info.data_failed,
        total=info.data_total,
        seconds=_seconds(info),
        reason=info.reason,
    )


def _seconds(info: Any) -> float | None:
    if not info.HasField("started"):
        return None
    end = info.finished.ToNanoseconds() if info.HasField("finished") else time.time_ns()
    elapsed: float = (end - info.started.ToNanoseconds()) / 1e9
    return max(0.0, elapsed)


class Jobs:
    """The jobs of one server's pipelines."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stub = pps_pb2_grpc.APIStub(connection.client._channel)

    def of_set(self, commit_set: str) -> list[Job]:
        """The jobs of a commit set, upstream first; none when it triggered nothing."""
        request = pps_pb2.InspectJobSetRequest(job_set=pps_pb2.JobSet(id=commit_set))
        try:
            return [job(info) for info in self._stub.InspectJobSet(request)]
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND:
                return []
            raise

    def newest(self, pipeline: str) -> Job | None:
        """A pipeline's newest job."""
        return next(self._of_pipeline(pipeline, 1), None)

    def unfinished(self) -> list[Job]:
        """Every job of the project that has not ended, oldest first."""
        only = [pfs_pb2.Project(name=self._connection.project)]
        found = map(job, self._stub.ListJob(pps_pb2.ListJobRequest(projects=only)))
        return [each for each in found if not each.ended][::-1]

    def _of_pipeline(self, pipeline: str, number: int) -> Iterator[Job]:
        asked = pps_pb2.ListJobRequest(pipeline=self._reference(pipeline), number=number)
        return map(job, self._stub.ListJob(asked))

    def _reference(self, pipeline: str) -> Any:
        return pps_pb2.Pipeline(name=pipeline, project=pfs_pb2.Project(name=self._connection.project))

    def watch(self, commit_sets: Sequence[str], look: Callable[[list[Job]], None]) -> list[Job]:
        """Calls `look` with all jobs of some commit sets until every one has ended; returns them."""
        while True:
            found = [each for commit_set in commit_sets for each in self.of_set(commit_set)]
            look(found)
            if all(each.ended for each in found):
                return found
            time.sleep(_LOOK_EVERY)

    def reasons(self, failed: Job) -> list[tuple[str, str]]:
        """Why the datums of a failed job failed: (datum id, reason), read from the pipeline's meta commit, since
        Pachyderm's own reason names only the first datum."""
        reference = pps_pb2.Job(pipeline=self._reference(failed.pipeline), id=failed.id)
        only = pps_pb2.ListDatumRequest.Filter(state=[pps_pb2.FAILED])
        listed = self._stub.ListDatum(pps_pb2.ListDatumRequest(job=reference, filter=only))
        meta = Repository(self._connection, failed.pipeline, failed.id, type_="meta")
        return [(info.datum.id, _reason(meta, info.datum.id)) for info in listed]


def _reason(meta: Repository, datum: str) -> str:
    try:
        record = json.loads(meta.read(f"/meta/{datum}/meta"))
    except (grpc.RpcError, ValueError):
        return "the reason is not in the pipeline's meta commit; see `pachctl logs`"
    return str(record.get("reason") or "no reason was recorded")
