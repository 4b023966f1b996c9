"""The commits of a repo's master branch, oldest first, and the files that each of them changed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from pipelines.client import owners
from pipelines.client.connection import Connection


@dataclass(frozen=True, slots=True)
class PastCommit:
    """A finished commit of a repo: its start (UTC) and its description."""

    repo: str
    id: str
    started: datetime
    description: str


@dataclass(frozen=True, slots=True)
class Record:
    """Any commit of a repo, for people: its start and its end (UTC; None before it is finished), whether files can
    still be added, its author, "" if the description does not name one, the description without that, its error, and
    the size of its files, at most."""

    repo: str
    id: str
    open: bool
    started: datetime
    finished: datetime | None
    author: str
    description: str
    error: str
    bytes: int


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that a commit changed, with Pachyderm's hash of the new content and its size; "" and 0 for a removed
    file."""

    path: str
    hash: str
    size: int


class History:
    """The history of one project's repos."""

    def __init__(self, connection: Connection) -> None:
        self._stub = pfs_pb2_grpc.APIStub(connection.client._channel)
        self._project = pfs_pb2.Project(name=connection.project)

    def commits(self, repo: str) -> list[PastCommit]:
        """The finished commits on master that users made and that have no error; none for a missing repo."""
        return [_commit(repo, info) for info in self._listed(repo) if info.HasField("finished") and not info.error]

    def last(self, repo: str, most: int) -> list[Record]:
        """The last commits on master, at most `most`, the newest first, without those that Pachyderm itself made in a
        repo for users; none for a missing repo."""
        return [_record(repo, info) for info in islice(filter(_is_for_people, self._infos(repo)), most)]

    def left_open(self, repo: str) -> PastCommit | None:
        """The commit on master to which files can still be added, if there is one."""
        return next((_commit(repo, info) for info in self._listed(repo) if not info.HasField("finishing")), None)

    def changes(self, commit: PastCommit) -> Iterator[FileChange]:
        """The files in which a commit differs from its parent, removed ones first."""
        named = self._repo(commit.repo)
        whole = pfs_pb2.Commit(repo=named, id=commit.id, branch=pfs_pb2.Branch(repo=named))
        new: dict[str, FileChange] = {}
        old: set[str] = set()
        for each in self._stub.DiffFile(pfs_pb2.DiffFileRequest(new_file=pfs_pb2.File(commit=whole, path="/"))):
            if each.HasField("new_file") and each.new_file.file_type == pfs_pb2.FILE:
                path = each.new_file.file.path
                new[path] = FileChange(path, each.new_file.hash.hex(), each.new_file.size_bytes)
            if each.HasField("old_file") and each.old_file.file_type == pfs_pb2.FILE:
                old.add(each.old_file.file.path)
        for path in sorted(old - new.keys()):
            yield FileChange(path, "", 0)
        for path in sorted(new):
            yield new[path]

    def _listed(self, repo: str) -> list[Any]:
        """The commits on master that users made, once those that the server is finishing are finished; none for a
        missing repo."""
        return [self._ended(info) for info in self._infos(repo, pfs_pb2.USER)][::-1]

    def _infos(self, repo: str, kind: int = pfs_pb2.ORIGIN_KIND_UNKNOWN) -> Iterator[Any]:
        """The commits on master, the newest first; none for a missing repo."""
        named = self._repo(repo)
        head = pfs_pb2.Commit(repo=named, branch=pfs_pb2.Branch(repo=named, name="master"))
        call = self._stub.ListCommit(pfs_pb2.ListCommitRequest(repo=named, to=head, all=True, origin_kind=kind))
        try:
            yield from call
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:
                raise
        finally:
            call.cancel()  # the rest, if there is any

    def _ended(self, info: Any) -> Any:
        if info.HasField("finishing") and not info.HasField("finished"):
            return self._stub.InspectCommit(pfs_pb2.InspectCommitRequest(commit=info.commit, wait=pfs_pb2.FINISHED))
        return info

    def _repo(self, name: str) -> Any:
        return pfs_pb2.Repo(name=name, type="user", project=self._project)


def _is_for_people(info: Any) -> bool:
    return bool(info.origin.kind == pfs_pb2.USER or info.direct_provenance)


def _commit(repo: str, info: Any) -> PastCommit:
    return PastCommit(repo, info.commit.id, info.started.ToDatetime(tzinfo=UTC), info.description)


def _record(repo: str, info: Any) -> Record:
    owner = owners.read(info.description)
    return Record(
        repo=repo,
        id=info.commit.id,
        open=not info.HasField("finishing"),
        started=info.started.ToDatetime(tzinfo=UTC),
        finished=info.finished.ToDatetime(tzinfo=UTC) if info.HasField("finished") else None,
        author=owner.user if owner else "",
        description=owners.words(info.description),
        error=info.error,
        bytes=info.details.size_bytes if info.HasField("details") else info.size_bytes_upper_bound,
    )
