"""The commits of a repo's master branch, oldest first, and the files that each of them changed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from pipelines.client.connection import Connection


@dataclass(frozen=True, slots=True)
class PastCommit:
    """A finished commit of a repo: its start (UTC) and its description."""

    repo: str
    id: str
    started: datetime
    description: str


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
        named = self._repo(repo)
        head = pfs_pb2.Commit(repo=named, branch=pfs_pb2.Branch(repo=named, name="master"))
        request = pfs_pb2.ListCommitRequest(repo=named, to=head, all=True, origin_kind=pfs_pb2.USER)
        try:
            return [self._ended(info) for info in self._stub.ListCommit(request)][::-1]
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND:
                return []
            raise

    def _ended(self, info: Any) -> Any:
        if info.HasField("finishing") and not info.HasField("finished"):
            return self._stub.InspectCommit(pfs_pb2.InspectCommitRequest(commit=info.commit, wait=pfs_pb2.FINISHED))
        return info

    def _repo(self, name: str) -> Any:
        return pfs_pb2.Repo(name=name, type="user", project=self._project)


def _commit(repo: str, info: Any) -> PastCommit:
    return PastCommit(repo, info.commit.id, info.started.ToDatetime(tzinfo=UTC), info.description)
