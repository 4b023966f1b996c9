"""Reading and writing the files of a repo's master branch: one commit for each write."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import grpc
from google.protobuf.wrappers_pb2 import BytesValue
from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.client.commit_writer import CommitWriter
from pipelines.client.file_sets import FileSets, ModifyRequests, chunks_of
from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found
from pipelines.client.stored_file import StoredFile, read_info
from pipelines.errors import LookalikeError
from stages.decode.tar_streams import ChunkReader, content, members, open_archive


@dataclass(frozen=True, slots=True)
class PutFile:
    """A file to write over the one at `path`; the content is bytes, an iterable of bytes, or a local file. The latter
    two are read only when the stream reaches them."""

    path: str
    content: bytes | Path | Iterable[bytes]


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A file to remove or, with a trailing slash, a directory. Removing a missing one is not an error."""

    path: str


@dataclass(frozen=True, slots=True)
class CopyFile:
    """A file to copy on the server, over the one at `path`, from a finished commit of a repo of the same project."""

    path: str
    repo: str
    commit: str
    source: str


FileEdit = PutFile | DeleteFile | CopyFile


class Repository:
    """One repo, at the head of its master branch, or at `at`: a commit's id, or an ancestor such as master^."""

    def __init__(self, connection: Connection, name: str, at: str = "", type_: str = "user") -> None:
        self.name = name
        self.at = at
        self._connection = connection
        self._stub = connection.pfs
        self._commit = connection.commit(name, at, type_)

    def write(
        self,
        edits: Iterable[FileEdit],
        done: Callable[[FileEdit], None] = lambda _: None,
        description: str = "",
        onto: str | None = None,
    ) -> str:
        """Applies the edits in order as one commit and returns its id. If anything fails, nothing is written.

        Raises LookalikeError if the repo does not exist or a file cannot be read, and MovedHeadError unless its newest
        commit is `onto`, if that is given ("" for none).
        """
        return write_set(
            self._connection, {self.name: edits}, done, description, None if onto is None else {self.name: onto}
        )

    def stage(self, edits: Iterable[FileEdit]) -> Any:
        """Applies edits of files, in order, as one commit on the branch `staging` and returns that commit, a child of
        the newest one of master. Raises LookalikeError if the repo does not exist."""
        with FileSets(self._connection) as filesets:
            return CommitWriter(self._connection, self.name).stage(filesets.make(self.requests(edits)))

    def files_in(self, directory: str) -> list[str]:
        """The paths of all files below a directory (a path with a trailing slash)."""
        return [each.path for each in self.files(directory) if each.path.startswith(directory)]

    def requests(self, edits: Iterable[FileEdit], done: Callable[[FileEdit], None] = lambda _: None) -> ModifyRequests:
        """The messages of edits; `done` hears of each edit after them. Raises OSError for an unreadable file."""
        for edit in edits:
            yield from self._messages(edit)
            done(edit)

    def good(self) -> "Repository | None":
        """This repo at the newest commit that finished without an error, unless `at` names one: a pipeline's head may
        be open, or be that of a failed job. None if no commit qualifies.

        With `at`, raises LookalikeError unless that commit exists and finished without an error.
        """
        try:
            info = self._connection.inspect(self._commit)
            while not self.at and (info.error or not info.HasField("finished")):
                if not info.HasField("parent_commit"):
                    return None
                info = self._connection.inspect(info.parent_commit)
        except grpc.RpcError as error:
            if not self.at and error.code() == grpc.StatusCode.NOT_FOUND:
                return None
            if self.at:
                raise LookalikeError(
                    f"{self.name} has no commit {self.at}: `lookalike commits {self.name}` lists them"
                ) from error
            raise
        if info.error:
            raise LookalikeError(f"commit {self.at} of {self.name} failed: {info.error}")
        if not info.HasField("finished"):
            raise LookalikeError(f"commit {self.at} of {self.name} is not finished yet: see `lookalike status`")
        return Repository(self._connection, self.name, info.commit.id, self._commit.repo.type)

    def find(self, path: str) -> StoredFile | None:
        """The file or directory at a path; None if there is none. "/" is there unless the repo is empty or missing."""
        with suppress_not_found():
            return read_info(self._stub.InspectFile(pfs_pb2.InspectFileRequest(file=self._file(path))))
        return None

    def exists(self, path: str) -> bool:
        """Whether a path is a file or a directory, see `find`."""
        return self.find(path) is not None

    def is_file(self, path: str) -> bool:
        """Whether a path is a file."""
        found = self.find(path)
        return found is not None and not found.is_directory

    def list(self, path: str = "/") -> Iterator[str]:
        """The paths directly in a directory, those of directories with a trailing slash; none in a repo without
        files."""
        return (each.path for each in self._listed(path))

    def entries(self) -> dict[str, bytes]:
        """The hash of each top-level file and directory, by its path without the first slash; a directory's has one at
        its end. None in a repo without files."""
        return {each.path.removeprefix("/"): bytes.fromhex(each.hash) for each in self._listed("/")}

    def glob(self, pattern: str) -> Iterator[StoredFile]:
        """The files and directories that match a pattern; none in a repo without files. The server looks only at those
        with its literal beginning."""
        return _found(self._stub.GlobFile(pfs_pb2.GlobFileRequest(commit=self._commit, pattern=pattern)))

    def files(self, path: str = "/") -> Iterator[StoredFile]:
        """The files below a directory, or the one at a path; none in a repo without files."""
        walk = self._stub.WalkFile(pfs_pb2.WalkFileRequest(file=self._file(path)))
        return (each for each in _found(walk) if not each.is_directory)

    def read(self, path: str, offset: int = 0, most: int = 0) -> bytes:
        """A file's content from an offset on, `most` bytes of it if that is given: the rest is not fetched."""
        call = self._stub.GetFile(pfs_pb2.GetFileRequest(file=self._file(path), offset=offset))
        content = bytearray()
        try:
            for message in call:
                content += message.value
                if most and len(content) >= most:
                    break
        finally:
            call.cancel()
        return bytes(content[:most] if most else content)

    def fetch(self, path: str, to: IO[bytes]) -> None:
        """Copies a file's content, piece by piece."""
        for piece in self.pieces(path):
            to.write(piece)

    def read_all(self, pattern: str) -> Iterator[tuple[str, bytes]]:
        """The path and the whole content of every file that matches a pattern, in one call."""
        for path, _, pieces in self.stream(pattern):
            yield path, b"".join(pieces)

    def contents(self) -> dict[str, bytes]:
        """The content of every top-level file by its name; none without the repo."""
        return {path.removeprefix("/"): content for path, content in self.read_all("/*")}

    def stream(self, pattern: str, first: str = "", last: str = "") -> Iterator[tuple[str, int, Iterator[bytes]]]:
        """The path, the size and the content of every file that matches a pattern, in one call; only those from `first`
        to `last` if these are given. A content can be read until the next one is taken."""
        # In a path no character is less than a space.
        limits = pfs_pb2.PathRange(lower=first, upper=last + " ") if last else None
        call = self._stub.GetFileTAR(pfs_pb2.GetFileRequest(file=self._file(pattern), path_range=limits))
        with suppress_not_found():
            with open_archive(ChunkReader(message.value for message in call)) as archive:
                for member in members(archive):
                    if member.isreg():
                        yield "/" + member.name.lstrip("/"), member.size, content(archive, member)
            deque(call, 0)  # an archive can end before its stream

    def extract(self, path: str, to: Path) -> None:
        """Writes every file below a directory (a path with a trailing slash) into a local one."""
        call = self._stub.GetFileTAR(pfs_pb2.GetFileRequest(file=self._file(path)))
        with open_archive(ChunkReader(message.value for message in call)) as archive:
            for member in archive:
                name = "/" + member.name.lstrip("/")
                member.name = name.removeprefix(path).lstrip("/")
                if member.name and name.startswith(path):  # not the directory itself
                    archive.extract(member, to, filter="data")

    def hashes(self, path: str) -> dict[str, bytes]:
        """The hash of every file below a directory, by path."""
        return {each.path: bytes.fromhex(each.hash) for each in self.files(path)}

    def _listed(self, path: str) -> Iterator[StoredFile]:
        return _found(self._stub.ListFile(pfs_pb2.ListFileRequest(file=self._file(path))))

    def pieces(self, path: str) -> Iterator[bytes]:
        """A file's content, piece by piece."""
        message: BytesValue
        for message in self._stub.GetFile(pfs_pb2.GetFileRequest(file=self._file(path))):
            yield message.value

    def _file(self, path: str) -> Any:
        return pfs_pb2.File(commit=self._commit, path=path)

    def _messages(self, edit: FileEdit) -> Iterator[Any]:
        yield pfs_pb2.ModifyFileRequest(delete_file=pfs_pb2.DeleteFile(path=edit.path))
        match edit:
            case PutFile(path, content):
                begun = False
                for piece in chunks_of(content):
                    yield pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path=path, raw=BytesValue(value=piece)))
                    begun = True
                if not begun:  # an empty file is a message without content
                    yield pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path=path, raw=BytesValue()))
            case CopyFile(path, repo, commit, source):
                of = Repository(self._connection, repo, commit)._file(source)
                yield pfs_pb2.ModifyFileRequest(copy_file=pfs_pb2.CopyFile(dst=path, src=of))


class EditUpload:
    """Edits of a repo that become a file set, uploaded once, for a commit on top of any other."""

    def __init__(
        self,
        repo: Repository,
        filesets: FileSets,
        edits: Iterable[FileEdit],
        done: Callable[[FileEdit], None] = lambda _: None,
    ) -> None:
        self._repo, self._filesets, self._edits, self._done = repo, filesets, edits, done
        self._directories: list[str] = []
        self._made = ""

    def content(self, parent: str) -> str:
        """The file set for this parent. Raises OSError for an unreadable file."""
        if not self._made:
            self._made = self._filesets.make(self._repo.requests(self._noted(), self._done))
        # In a file set the removal of a directory removes no files of the commit below.
        before = Repository(self._repo._connection, self._repo.name, parent)
        below = [DeleteFile(path) for each in self._directories if parent for path in before.files_in(each)]
        return self._filesets.compose(
            [*([self._filesets.make(self._repo.requests(below))] if below else []), self._made]
        )

    def _noted(self) -> Iterator[FileEdit]:
        for edit in self._edits:
            self._directories += [edit.path] if isinstance(edit, DeleteFile) and edit.path.endswith("/") else []
            yield edit


def write_set(
    connection: Connection,
    edits: Mapping[str, Iterable[FileEdit]],
    done: Callable[[FileEdit], None] = lambda _: None,
    description: str = "",
    onto: Mapping[str, str] | None = None,
) -> str:
    """Applies edits to several repos as one commit set, in each as `Repository.write` does, and returns its id. onto:
    the newest commits of these repos, as far as they are to be checked."""
    with FileSets(connection) as filesets:
        uploads = {name: EditUpload(Repository(connection, name), filesets, each, done) for name, each in edits.items()}

        def content(parents: Mapping[str, str]) -> dict[str, str]:
            return {name: each.content(parents[name]) for name, each in uploads.items()}

        try:
            return CommitWriter(connection, *uploads).make(content, description, onto)
        except ConnectionError:  # an OSError, into which the client turns some of gRPC's
            raise
        except OSError as error:
            raise LookalikeError(
                f"cannot read {error.filename or 'a file'}: {error.strerror or error}: nothing was put"
            ) from error


def sizes(connection: Connection) -> dict[str, int]:
    """The bytes of the files of each repo of the project, at most, by name."""
    infos = (each for each in connection.client.list_repo() if each.repo.project.name == connection.project)
    return {each.repo.name: each.size_bytes_upper_bound for each in infos}


def _found(infos: Iterable[Any]) -> Iterator[StoredFile]:
    """The files whose infos a call streams; none if the server does not find the path."""
    with suppress_not_found():
        yield from map(read_info, infos)
