"""The origin of files: the datum that wrote one, the job that processed that datum, and the commit that put a file.

Every method is one call that does not depend on the number of datums: Pachyderm's InspectDatum reads the records of all
datums of a job, so the record is read from the meta commit here. Knows neither stages nor pictures.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client import commit_owner
from pipelines.client.commit_sets import inspect_commit, origins
from pipelines.client.jobs import datum_records
from pipelines.client.jobs.datum_records import DatumRecord
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found
from pipelines.client.stored_file import StoredFile

_Known = TypeVar("_Known")


@dataclass(frozen=True, slots=True)
class JobDetails:
    """A job with the code that it ran: the version of its pipeline, its times (UTC), the image and the variables, by
    name: a message has them in any order."""

    version: int
    started: datetime | None
    finished: datetime | None
    image: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommitDetails:
    """A commit: its start (UTC), its author, "" if unknown, its description in words, its parent's id, and, for an
    imported one, the time of the original."""

    id: str
    started: datetime
    author: str
    description: str
    parent: str = ""
    original: datetime | None = None


class Lineage:
    """The origins of one project's files. Answers are remembered."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[str, ...], Any] = {}

    def file(self, repo: str, path: str, at: str) -> StoredFile | None:
        """A file or directory at a commit or commit set; None if it is not there."""
        return self._once(("file", repo, path, at), lambda: Repository(self._connection, repo, at).find(path))

    def files(self, repo: str, pattern: str, at: str) -> list[StoredFile]:
        """The files and directories that match a pattern, see `Repository.glob`."""
        repository = Repository(self._connection, repo, at)
        return self._once(("files", repo, pattern, at), lambda: list(repository.glob(pattern))) or []

    def read(self, file: StoredFile, offset: int = 0, most: int = 0) -> bytes:
        """A file's content, see `Repository.read`."""
        return Repository(self._connection, file.repo, file.commit).read(file.path, offset, most)

    def record(self, file: StoredFile) -> DatumRecord | None:
        """The record of the datum that wrote a file, from its pipeline's meta commit; None if it is not there."""

        def look() -> DatumRecord:
            meta = Repository(self._connection, file.repo, file.commit, "meta")
            return datum_records.parse(meta.read(f"/meta/{file.datum}/meta"))

        if not file.datum:
            return None
        try:
            return self._once(("record", file.repo, file.commit, file.datum), look)
        except (ValueError, KeyError, TypeError):  # not a record, or another version's
            return None

    def job(self, pipeline: str, id_: str) -> JobDetails | None:
        """A job of a pipeline; None if it was deleted, as with a squashed commit."""

        def inspect() -> JobDetails:
            of = self._connection.job(pipeline, id_)
            return _job(self._connection.pps.InspectJob(pps_pb2.InspectJobRequest(job=of, details=True)))

        return self._once(("job", pipeline, id_), inspect)

    def commit(self, repo: str, at: str) -> CommitDetails | None:
        """The commit that a repo has in a commit set; None if there is none."""
        info = self._once(("commit", repo, at), lambda: inspect_commit(self._connection, repo, at))
        return None if info is None else _made(info)

    def writers(self, repo: str, path: str, at: str) -> Iterator[str]:
        """The ids of the commits that wrote or removed a file, from a commit backwards, the newest first."""
        call = self._connection.pfs.FindCommits(
            pfs_pb2.FindCommitsRequest(start=self._connection.commit(repo, at), file_path=path)
        )
        try:
            for reply in call:
                if reply.WhichOneof("result") == "found_commit":
                    yield reply.found_commit.id
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:
                raise
        finally:
            call.cancel()

    def _once(self, key: tuple[str, ...], ask: Callable[[], _Known | None]) -> _Known | None:
        """The answer, asked for once; None if the server does not find it."""
        if key not in self._known:
            self._known[key] = None
            with suppress_not_found():
                self._known[key] = ask()
        answer: _Known | None = self._known[key]
        return answer


def _job(info: Any) -> JobDetails:
    transform = info.details.transform
    times = (getattr(info, name) if info.HasField(name) else None for name in ("started", "finished"))
    started, finished = (each and each.ToDatetime(tzinfo=UTC) for each in times)
    return JobDetails(info.pipeline_version, started, finished, transform.image, dict(sorted(transform.env.items())))


def _made(info: Any) -> CommitDetails:
    owner, before = commit_owner.read(info.description), origins(info.description)
    return CommitDetails(
        id=info.commit.id,
        started=info.started.ToDatetime(tzinfo=UTC),
        author=owner.user if owner else "",
        description=commit_owner.without_owner(info.description),
        parent=info.parent_commit.id if info.HasField("parent_commit") else "",
        original=before[0].started if before else None,
    )
