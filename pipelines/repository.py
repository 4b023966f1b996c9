"""Reading and writing the files of a repo's master branch: one stream for each write, one commit for each stream."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import grpc
from google.protobuf.wrappers_pb2 import BytesValue
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from pipelines.connection import Connection
from pipelines.errors import LookalikeError

_PIECE = 2 << 20
"""Bytes of one message of an upload."""


@dataclass(frozen=True, slots=True)
class Put:
    """A file to write over whatever is at `path`; the content is bytes, or a local file read when its turn comes."""

    path: str
    content: bytes | Path


@dataclass(frozen=True, slots=True)
class Remove:
    """A file to remove or, with a trailing slash, a directory."""

    path: str


Change = Put | Remove


class Repository:
    """One repo, at the head of its master branch or at the commit set `at`."""

    def __init__(self, connection: Connection, name: str, at: str = "", type_: str = "user") -> None:
        self.name = name
        self._stub = pfs_pb2_grpc.APIStub(connection.client._channel)
        self._repo = pfs_pb2.Repo(name=name, type=type_, project=pfs_pb2.Project(name=connection.project))
        branch = pfs_pb2.Branch(repo=self._repo, name="" if at else "master")
        self._commit = pfs_pb2.Commit(repo=self._repo, branch=branch, id=at)

    def write(self, changes: Iterable[Change], done: Callable[[Change], None] = lambda _: None) -> str:
        """Applies the changes in order as one commit and returns its id. Whatever goes wrong, nothing is written."""
        failure: list[Exception] = []

        def requests() -> Iterator[Any]:
            # gRPC would swallow what this generator raises, and tell only that the stream was cancelled.
            try:
                yield pfs_pb2.ModifyFileRequest(set_commit=self._commit)
                for change in changes:
                    yield from _messages(change)
                    done(change)
            except Exception as error:
                failure.append(error)
                raise

        try:
            self._stub.ModifyFile(requests())
        except grpc.RpcError:
            if failure:
                raise _readable(failure[0]) from failure[0]
            raise
        return self.head()

    def head(self) -> str:
        """The id of the commit read from."""
        commit_id: str = self._stub.InspectCommit(pfs_pb2.InspectCommitRequest(commit=self._commit)).commit.id
        return commit_id

    def exists(self, path: str) -> bool:
        """Whether there is a file or a directory at a path."""
        return self.inspect(path) is not None

    def inspect(self, path: str) -> Any:
        """The FileInfo of a file or a directory, or None."""
        try:
            return self._stub.InspectFile(pfs_pb2.InspectFileRequest(file=self._file(path)))
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND:
                return None
            raise

    def list(self, path: str = "/") -> Iterator[Any]:
        """The FileInfos of what is directly in a directory; none where nothing was ever put."""
        try:
            yield from self._stub.ListFile(pfs_pb2.ListFileRequest(file=self._file(path)))
        except grpc.RpcError as error:
            if not (error.details() or "").startswith("branch "):
                raise

    def glob(self, pattern: str) -> Iterator[Any]:
        """The FileInfos of what matches a pattern."""
        return iter(self._stub.GlobFile(pfs_pb2.GlobFileRequest(commit=self._commit, pattern=pattern)))

    def read(self, path: str) -> bytes:
        """A file's whole content."""
        return b"".join(self._pieces(path))

    def fetch(self, path: str, to: IO[bytes]) -> None:
        """Copies a file's content, piece by piece."""
        for piece in self._pieces(path):
            to.write(piece)

    def _pieces(self, path: str) -> Iterator[bytes]:
        message: BytesValue
        for message in self._stub.GetFile(pfs_pb2.GetFileRequest(file=self._file(path))):
            yield message.value

    def _file(self, path: str) -> Any:
        return pfs_pb2.File(commit=self._commit, path=path)


def _messages(change: Change) -> Iterator[Any]:
    yield pfs_pb2.ModifyFileRequest(delete_file=pfs_pb2.DeleteFile(path=change.path))
    if isinstance(change, Remove):
        return
    if isinstance(change.content, bytes):
        pieces = iter([change.content[start : start + _PIECE] for start in range(0, len(change.content), _PIECE)])
    else:
        pieces = _file_pieces(change.content)
    # A file without content is an addition without a source, so the first message must come in any case.
    first = next(pieces, b"")
    yield pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path=change.path, raw=BytesValue(value=first)))
    for piece in pieces:
        yield pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path=change.path, raw=BytesValue(value=piece)))


def _file_pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _readable(error: Exception) -> Exception:
    if isinstance(error, OSError):
        return LookalikeError(f"cannot read {error.filename}: {error.strerror}; nothing was put")
    return error
