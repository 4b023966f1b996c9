"""One datum run again, alone, on localpachd, with its inputs, variables, log and output kept in a directory. No commit
changes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc
from google.protobuf.struct_pb2 import Struct
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.jobs.datums import JobDatums
from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError

_CALL = "/localpachd.Debug/RunDatum"
_FILE_SETS = "__filesets__"


@dataclass(frozen=True, slots=True)
class DatumRerun:
    """The datum's failures, this time and in its job, "" for success. `changed` are the paths of its output that differ
    from the recorded ones, if it succeeded both times."""

    failed: str
    failed_before: str
    changed: tuple[str, ...] = ()


def job_of(jobs: ProjectJobs, pipeline: str, job: str) -> Job:
    """A job whose datums are known, by default the newest. Raises LookalikeError if there is none."""
    found = jobs.of(pipeline, job) if job else jobs.newest(pipeline)
    if found is None:
        named = f"job {job}" if job else "job"
        raise LookalikeError(f"{pipeline} has no {named}: `lookalike jobs {pipeline}` lists its jobs")
    if not found.started:
        raise LookalikeError(
            f"{pipeline}@{found.id} has not started, so its datums are not known yet: wait for it, or see "
            "the reason in `lookalike status`"
        )
    return found


def choose(connection: Connection, pipeline: str, job: str, datum: str) -> tuple[Job, str]:
    """The job and the datum: by default the newest job and its first failed datum; the beginning of a datum's id is
    enough. Raises LookalikeError if either does not exist, the beginning is ambiguous, or the datums are not known
    yet."""
    found = job_of(ProjectJobs(connection), pipeline, job)
    datums = JobDatums(connection, found)
    where = f"{pipeline}@{found.id}"
    try:
        failed = [] if datum else [each.datum for each in datums.failed(1)]
        known = [each.id for each in datums if each.id.startswith(datum)] if datum else failed
    except grpc.RpcError as error:
        if found.ended or error.code() is grpc.StatusCode.UNAVAILABLE:
            raise
        raise LookalikeError(
            f"the server does not list the datums of {where} before it has ended: wait for it; `lookalike status` "
            "shows its state"
        ) from error
    if not known and not datum:
        raise LookalikeError(f"no datum of {where} failed: name one that `lookalike jobs {where}` lists")
    if not known:
        raise LookalikeError(f"{where} has no datum {datum}: `lookalike jobs {where}` lists its datums")
    if len(known) > 1:
        raise LookalikeError(f"{len(known)} datums of {where} begin with {datum}: give more of the id")
    return found, known[0]


def run(connection: Connection, job: Job, datum: str, to: Path, say: Callable[[str, bool], None]) -> DatumRerun:
    """Runs a datum again and fetches everything about it into the new directory `to`: `pfs/` as the process saw it,
    with lazy inputs whole and its output in `pfs/out/`; `env`, its variables; `log`, its log. `say` is called with each
    log line and whether user code wrote it.

    Raises LookalikeError if the server stops it, FileExistsError if the directory exists.
    """
    said: list[str] = []

    def line(text: str, user: bool) -> None:
        said.append(f"{text}\n")
        say(text, user)

    ended = _ended(connection, job, datum, line)
    place = ended["directory"]
    kept = Repository(connection, _FILE_SETS, ended["file_set"])
    to.mkdir(parents=True)
    (to / "log").write_text("".join(said))
    kept.extract(f"{place}/", to / "pfs")
    (to / "pfs" / ".env").rename(to / "env")
    (to / "pfs" / "out").mkdir(exist_ok=True)
    recorded = Repository(connection, job.pipeline, job.id, type_="meta")
    failed_before = JobDatums(connection, job).reason(datum)
    if ended["reason"] or failed_before:
        return DatumRerun(ended["reason"], failed_before)
    before, now = (repo.hashes(f"{place}/out/") for repo in (recorded, kept))
    differing = {path.removeprefix(f"{place}/out") for path, _ in before.items() ^ now.items()}
    return DatumRerun("", "", tuple(sorted(differing)))


def _ended(connection: Connection, job: Job, datum: str, line: Callable[[str, bool], None]) -> dict[str, str]:
    """The last message of the run, after every log line was passed on."""
    call = connection.client._channel.unary_stream(
        _CALL, request_serializer=pps_pb2.InspectDatumRequest.SerializeToString, response_deserializer=Struct.FromString
    )
    of = connection.job(job.pipeline, job.id)
    for reply in call(pps_pb2.InspectDatumRequest(datum=pps_pb2.Datum(job=of, id=datum))):
        if "line" not in reply:
            return {name: str(value) for name, value in reply.items()}
        line(reply["line"], reply["user"])
    raise LookalikeError("the server stopped the datum before it ended")
