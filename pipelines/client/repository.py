"""Reading and writing the files of a repo's master branch: one stream for each write, one commit for each stream."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import grpc
from google.protobuf.wrappers_pb2 import BytesValue
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from pipelines.client.connection import Connection
from pipelines.client.tarstreams import reading
from pipelines.errors import LookalikeError

_PIECE = 2 << 20
"""Bytes of one message of an upload."""


@dataclass(frozen=True, slots=True)
class Put:
    """A file to write over the one at `path`; the content is bytes, whole or in pieces, or a local file. The latter two
    are read when their turn comes."""

    path: str
    content: bytes | Path | Iterable[bytes]


@dataclass(frozen=True, slots=True)
class Remove:
    """A file to remove or, with a trailing slash, a directory. What is not there is removed already."""

    path: str


Edit = Put | Remove


class Repository:
    """One repo, at the head of its master branch, or at `at`: a commit's id, or an ancestor such as master^."""

    def __init__(self, connection: Connection, name: str, at: str = "", type_: str = "user") -> None:
        self.name = name
        self.at = at
        self._connection = connection
        self._stub = pfs_pb2_grpc.APIStub(connection.client._channel)
        self._repo = pfs_pb2.Repo(name=name, type=type_, project=pfs_pb2.Project(name=connection.project))
        branch = pfs_pb2.Branch(repo=self._repo, name="" if at else "master")
        self._commit = pfs_pb2.Commit(repo=self._repo, branch=branch, id=at)

    def write(self, changes: Iterable[Edit], done: Callable[[Edit], None] = lambda _: None) -> str:
        """Applies the changes in order as one commit and returns its id. Whatever goes wrong, nothing is written.

        Pachyderm does not say which commit a write has made: if somebody else writes at the same moment, it may be
        theirs, which holds what was written here too.
        """
        self._modify(self._commit, changes, done)
        written = self._inspect(self._commit)
        if not written.HasField("finishing"):
            raise LookalikeError(
                f"somebody has opened commit {written.commit.id} of {self.name}: what was put is in it, and nothing "
                f"happens before it ends: `pachctl finish commit {self.name}@master`"
            )
        return str(written.commit.id)

    def write_as(self, description: str, changes: Iterable[Edit]) -> str:
        """Applies the changes in order as one commit with a description and returns its id. If that fails, there is no
        such commit."""
        start = pfs_pb2.StartCommitRequest(branch=self._commit.branch, description=description)
        commit = self._stub.StartCommit(start)
        try:
            self._modify(commit, changes, lambda _: None)
            self._stub.FinishCommit(pfs_pb2.FinishCommitRequest(commit=commit))
        except BaseException:
            self._stub.DropCommitSet(pfs_pb2.DropCommitSetRequest(commit_set=pfs_pb2.CommitSet(id=commit.id)))
            raise
        return str(commit.id)

    def _modify(self, commit: Any, changes: Iterable[Edit], done: Callable[[Edit], None]) -> None:
        failure: list[Exception] = []

        def requests() -> Iterator[Any]:
            # gRPC would swallow what this generator raises, and tell only that the stream was cancelled.
            try:
                yield pfs_pb2.ModifyFileRequest(set_commit=commit)
                for change in changes:
                    yield from _messages(change)
                    done(change)
            except Exception as error:
                failure.append(error)
                raise

        try:
            self._stub.ModifyFile(requests())
        except grpc.RpcError as error:
            if failure:
                raise _readable(failure[0]) from failure[0]
            if error.code() == grpc.StatusCode.NOT_FOUND:
                raise LookalikeError(
                    f"there is no repo {self.name}: make the repos and pipelines with `lookalike deploy`"
                ) from error
            raise

    def good(self) -> "Repository | None":
        """This repo at the newest commit that ended without an error, where `at` names none. A pipeline's head may be
        open, or that of a failed job. None where there is no such commit.

        With `at`, raises LookalikeError unless that commit is there and ended so.
        """
        try:
            info = self._inspect(self._commit)
            while not self.at and (info.error or not info.HasField("finished")):
                if not info.HasField("parent_commit"):
                    return None
                info = self._inspect(info.parent_commit)
        except grpc.RpcError as error:
            if not self.at and error.code() == grpc.StatusCode.NOT_FOUND:
                return None
            if self.at:
                raise LookalikeError(
                    f"{self.name} knows no commit {self.at}: `pachctl list commit {self.name}@master` lists them"
                ) from error
            raise
        if info.error:
            raise LookalikeError(f"commit {self.at} of {self.name} failed: {info.error}")
        if not info.HasField("finished"):
            raise LookalikeError(f"commit {self.at} of {self.name} has not ended yet: see `lookalike status`")
        return Repository(self._connection, self.name, info.commit.id, self._repo.type)

    def exists(self, path: str) -> bool:
        """Whether there is a file or a directory at a path; "/" is there unless the repo is empty or missing."""
        try:
            self._stub.InspectFile(pfs_pb2.InspectFileRequest(file=self._file(path)))
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND:
                return False
            raise
        return True

    def list(self, path: str = "/") -> Iterator[str]:
        """The paths of what is directly in a directory, those of directories with a slash at their end; none where
        nothing was ever put."""
        return self._paths(self._stub.ListFile(pfs_pb2.ListFileRequest(file=self._file(path))))

    def glob(self, pattern: str) -> Iterator[str]:
        """The paths of what matches a pattern."""
        return self._paths(self._stub.GlobFile(pfs_pb2.GlobFileRequest(commit=self._commit, pattern=pattern)))

    def read(self, path: str) -> bytes:
        """A file's whole content."""
        return b"".join(self.pieces(path))

    def fetch(self, path: str, to: IO[bytes]) -> None:
        """Copies a file's content, piece by piece."""
        for piece in self.pieces(path):
            to.write(piece)

    def read_all(self, pattern: str) -> Iterator[tuple[str, bytes]]:
        """The path and the whole content of every file that matches a pattern, in one call."""
        stream = self._stub.GetFileTAR(pfs_pb2.GetFileRequest(file=self._file(pattern)))
        try:
            with reading(message.value for message in stream) as archive:
                for member in archive:
                    content = archive.extractfile(member)
                    if content is not None:
                        yield "/" + member.name.lstrip("/"), content.read()
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:
                raise

    def extract(self, path: str, to: Path) -> None:
        """Writes every file below a directory (a path with a slash at its end) into a local one."""
        stream = self._stub.GetFileTAR(pfs_pb2.GetFileRequest(file=self._file(path)))
        with reading(message.value for message in stream) as archive:
            for member in archive:
                member.name = ("/" + member.name.lstrip("/")).removeprefix(path).lstrip("/")
                if member.name:
                    archive.extract(member, to, filter="data")

    def hashes(self, path: str) -> dict[str, bytes]:
        """The hash of every file below a directory, by path."""
        walk = self._stub.WalkFile(pfs_pb2.WalkFileRequest(file=self._file(path)))
        try:
            return {info.file.path: info.hash for info in walk if info.file_type == pfs_pb2.FILE}
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:
                raise
            return {}

    def _inspect(self, commit: Any) -> Any:
        return self._stub.InspectCommit(pfs_pb2.InspectCommitRequest(commit=commit, wait=pfs_pb2.STARTED))

    def _paths(self, found: Iterable[Any]) -> Iterator[str]:
        try:
            for info in found:
                yield info.file.path
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:
                raise

    def pieces(self, path: str) -> Iterator[bytes]:
        """A file's content, piece by piece."""
        message: BytesValue
        for message in self._stub.GetFile(pfs_pb2.GetFileRequest(file=self._file(path))):
            yield message.value

    def _file(self, path: str) -> Any:
        return pfs_pb2.File(commit=self._commit, path=path)


def _messages(change: Edit) -> Iterator[Any]:
    yield pfs_pb2.ModifyFileRequest(delete_file=pfs_pb2.DeleteFile(path=change.path))
    if isinstance(change, Remove):
        return
    begun = False
    for piece in _pieces_of(change.content):
        yield pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path=change.path, raw=BytesValue(value=piece)))
        begun = True
    if not begun:  # an empty file is a message without content
        yield pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path=change.path, raw=BytesValue()))


def _pieces_of(content: bytes | Path | Iterable[bytes]) -> Iterator[bytes]:
    """The content in pieces of `_PIECE` bytes, the last one shorter."""
    if isinstance(content, Path):
        with content.open("rb") as file:
            while piece := file.read(_PIECE):
                yield piece
        return
    gathered = bytearray()
    for part in (content,) if isinstance(content, bytes) else content:
        gathered += part
        while len(gathered) >= _PIECE:
            yield bytes(gathered[:_PIECE])
            del gathered[:_PIECE]
    if gathered:
        yield bytes(gathered)


def _readable(error: Exception) -> Exception:
    if isinstance(error, OSError):
        return LookalikeError(f"cannot read {error.filename or 'a file'}: {error.strerror or error}; nothing was put")
    return error
