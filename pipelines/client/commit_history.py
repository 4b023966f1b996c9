"""The commits of a repo's master branch, oldest first, and the files that each of them changed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.client import commit_owner
from pipelines.client.commit_sets import commit_infos
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.stored_file import StoredFile, read_info

_CREATED_BY = 16
"""The number of the field created_by of Pachyderm 2.10's CommitInfo."""


@dataclass(frozen=True, slots=True)
class PastCommit:
    """A finished commit of a repo: its start (UTC) and its description."""

    repo: str
    id: str
    started: datetime
    description: str


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """Any commit of a repo, for people: its start and its end (UTC; None before it is finished), whether files can
    still be added, its author, "" if neither the description nor the server names one, the description without that,
    its error, and the size of its files, at most."""

    repo: str
    id: str
    open: bool
    started: datetime
    finished: datetime | None
    author: str
    description: str
    error: str
    bytes: int

    @property
    def good(self) -> bool:
        """Whether it finished without an error."""
        return self.finished is not None and not self.error


@dataclass(frozen=True, slots=True)
class FilePair:
    """A file in which two commits differ: as it was before, and after; None where there is none."""

    path: str
    old: StoredFile | None
    new: StoredFile | None


class CommitHistory:
    """The history of one project's repos."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def commits(self, repo: str) -> list[PastCommit]:
        """The finished commits on master that users made and that have no error; none for a missing repo."""
        return [_commit(repo, info) for info in self._listed(repo) if info.HasField("finished") and not info.error]

    def last(self, repo: str, most: int) -> list[CommitRecord]:
        """The last of `records`, at most `most`."""
        return list(islice(self.records(repo), most))

    def records(self, repo: str) -> Iterator[CommitRecord]:
        """The commits on master, the newest first, without those that Pachyderm itself made in a repo for users; none
        for a missing repo."""
        return (_record(repo, info) for info in commit_infos(self._connection, repo) if _is_for_people(info))

    def author_of_version(self, pipeline: str, id_: str) -> str:
        """The user who deployed a version of a pipeline, by the commit of its specification; "" if the server does not
        tell."""
        return _created_by(self._connection.inspect(self._connection.commit(pipeline, id_, "spec")))

    def version_starts(self, pipeline: str) -> dict[str, datetime]:
        """When each version of a pipeline was deployed (UTC), by the commit of its specification."""
        repo = self._connection.commit(pipeline, "", "spec").branch.repo
        found = self._connection.pfs.ListCommit(pfs_pb2.ListCommitRequest(repo=repo, all=True))
        return {info.commit.id: info.started.ToDatetime(tzinfo=UTC) for info in found}

    def ended(self, record: CommitRecord) -> CommitRecord:
        """The commit once the server has finished it; as it is if it is open."""
        if record.open or record.finished is not None:
            return record
        commit = self._connection.commit(record.repo, record.id)
        return _record(record.repo, self._connection.inspect(commit, pfs_pb2.FINISHED))

    def left_open(self, repo: str) -> PastCommit | None:
        """The commit on master to which files can still be added, if there is one."""
        return next((_commit(repo, info) for info in self._listed(repo) if not info.HasField("finishing")), None)

    def pairs(self, repo: str, new: str, old: str | None = None) -> list[FilePair]:
        """The files in which one commit of a repo differs from another: "" for an empty one, None for its parent. Of
        directories only the files in them."""
        if old == "":
            return [FilePair(each.path, None, each) for each in Repository(self._connection, repo, new).files()]
        request = pfs_pb2.DiffFileRequest(new_file=self._root(repo, new), old_file=old and self._root(repo, old))
        before: dict[str, StoredFile] = {}
        after: dict[str, StoredFile] = {}
        for each in self._connection.pfs.DiffFile(request):
            for files, side in ((before, "old_file"), (after, "new_file")):
                if each.HasField(side) and getattr(each, side).file_type == pfs_pb2.FILE:
                    found = read_info(getattr(each, side))
                    files[found.path] = found
        return [FilePair(path, before.get(path), after.get(path)) for path in {**before, **after}]

    def _root(self, repo: str, commit: str) -> Any:
        return pfs_pb2.File(commit=self._connection.commit(repo, commit), path="/")

    def _listed(self, repo: str) -> list[Any]:
        """The commits on master that users made, once those that the server is finishing are finished; none for a
        missing repo."""
        return [self._ended(info) for info in commit_infos(self._connection, repo, pfs_pb2.USER)][::-1]

    def _ended(self, info: Any) -> Any:
        if info.HasField("finishing") and not info.HasField("finished"):
            return self._connection.inspect(info.commit, pfs_pb2.FINISHED)
        return info


def _is_for_people(info: Any) -> bool:
    return bool(info.origin.kind == pfs_pb2.USER or info.direct_provenance)


def _created_by(info: Any) -> str:
    """The user who made a commit, which Pachyderm 2.10 and later know; "" otherwise. The messages here are of 2.7."""
    for field in info.UnknownFields():
        if field.field_number == _CREATED_BY and isinstance(field.data, bytes):
            return field.data.decode(errors="replace")
    return ""


def _commit(repo: str, info: Any) -> PastCommit:
    return PastCommit(repo, info.commit.id, info.started.ToDatetime(tzinfo=UTC), info.description)


def _record(repo: str, info: Any) -> CommitRecord:
    owner = commit_owner.read(info.description)
    return CommitRecord(
        repo=repo,
        id=info.commit.id,
        open=not info.HasField("finishing"),
        started=info.started.ToDatetime(tzinfo=UTC),
        finished=info.finished.ToDatetime(tzinfo=UTC) if info.HasField("finished") else None,
        author=owner.user if owner else _created_by(info),
        description=commit_owner.without_owner(info.description),
        error=info.error,
        bytes=info.details.size_bytes if info.HasField("details") else info.size_bytes_upper_bound,
    )
