"""What a running job's log says of attempts, in the words of Pachyderm's workers."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.jobs import workers


@dataclass(frozen=True, slots=True)
class Logs:
    """An answer of a server: the lines of its workers, as a real Pachyderm 2.7.8 wrote them."""

    lines: tuple[str, ...]

    def GetLogs(self, request: pps_pb2.GetLogsRequest) -> Iterator[pps_pb2.LogMessage]:
        for line in self.lines:
            yield pps_pb2.LogMessage(message=line, job_id=request.job.id, user=not line.startswith("errored"))


def failed(*lines: str) -> tuple[str, ...]:
    """The failed attempts that these lines are read as."""
    return workers.read(Logs(lines), pps_pb2.Job(id="job"), [pps_pb2.WorkerStatus(worker_id="w")])[1]


@pytest.mark.parametrize(
    ("duration", "seconds"), [("429.294884ms", 0), ("2.309999815s", 2), ("1m2.5s", 62), ("1h0m3s", 3603), ("15.5µs", 0)]
)
def test_the_time_of_a_failed_attempt(duration: str, seconds: int) -> None:
    line = f"errored running user code after {duration}: exit status 1"
    assert failed(line) == (f"an attempt failed after {seconds} s: exit status 1",)


def test_a_batching_process_that_ended_after_its_datums_has_not_failed() -> None:
    ended = (
        "errored running user code after 429.294884ms: signal: killed because context canceled\n"
        "context created at /src/transform/worker.go:323; context cancelled at /src/transform/worker.go:316"
    )
    killed = "errored running user code after 3.2s: signal: killed"
    assert failed(ended, killed) == ("an attempt failed after 3 s: signal: killed (the machine may lack memory)",)
