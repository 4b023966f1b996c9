"""The few calls of Pachyderm that the service makes: commits, their provenance, and files. Changes nothing there.

Knows neither the meaning of files nor when to ask.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

_SECONDS = 60.0
"""For calls whose answer does not wait for anybody."""

_OPTIONS = (
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.max_reconnect_backoff_ms", 3000),
    ("grpc.use_local_subchannel_pool", 1),
)

_CUT_OFF = ("RST_STREAM", "Stream removed", "transport is closing")
"""Parts of the details with which a stream ends whose server has gone, whichever code it has."""


class PachydermError(Exception):
    """A call that failed; the text is a sentence for people."""


class Absent(PachydermError):
    """The repo, commit or file does not exist."""


class Unreachable(PachydermError):
    """Pachyderm did not answer, or the connection broke off."""


@dataclass(frozen=True)
class PachydermAddress:
    """The place of a Pachyderm: grpc://HOST:PORT or grpcs://HOST:PORT, its project, and the credentials."""

    url: str
    project: str = "default"
    token: str | None = field(default=None, repr=False)
    root_certificates: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class CommitFacts:
    """A commit. provenance: the commits that it was made from directly, as pairs of repo and id."""

    repo: str
    id: str
    finished: bool
    error: str
    provenance: tuple[tuple[str, str], ...]

    @property
    def good(self) -> bool:
        """Whether it is finished and without an error."""
        return self.finished and not self.error


@dataclass(frozen=True)
class FileFacts:
    """A file of a commit: its path without slashes at its ends, its size in bytes, Pachyderm's hash of its content in
    hex digits."""

    path: str
    size: int
    hash: str
    is_directory: bool


class PachydermClient:
    """A connection to one project of a Pachyderm. All methods raise PachydermError."""

    def __init__(self, at: PachydermAddress) -> None:
        self.at = at
        parts = urlsplit(at.url if "://" in at.url else f"grpc://{at.url}")
        if parts.scheme not in ("grpc", "grpcs", "http", "https") or not parts.hostname:
            raise PachydermError(
                f"{at.url} is not a valid address of a Pachyderm server, such as grpc://127.0.0.1:30650"
            )
        place = f"{parts.hostname}:{parts.port or 30650}"
        if parts.scheme in ("grpcs", "https"):
            credentials = grpc.ssl_channel_credentials(at.root_certificates)
            self._channel = grpc.secure_channel(place, credentials, _OPTIONS)
        else:
            self._channel = grpc.insecure_channel(place, _OPTIONS)
        self._stub = pfs_pb2_grpc.APIStub(self._channel)
        self._metadata = (("authn-token", at.token),) if at.token else ()

    def close(self) -> None:
        """Ends the connection, and all calls on it."""
        self._channel.close()

    def commits(self, repo: str) -> Iterator[CommitFacts]:
        """The commits on master, the newest first. Raises Absent for a missing repo."""
        named = self._repo(repo)
        head = pfs_pb2.Commit(repo=named, branch=pfs_pb2.Branch(repo=named, name="master"))
        request = pfs_pb2.ListCommitRequest(repo=named, to=head, all=True)
        return map(_commit, self._messages(self._stub.ListCommit, request))

    def newest(self, repo: str) -> CommitFacts | None:
        """The newest commit on master that is good; None if there is none, or no such repo."""
        try:
            return next((each for each in self.commits(repo) if each.good), None)
        except Absent:
            return None

    def commit(self, repo: str, id: str, wait: bool = False) -> CommitFacts:
        """A commit by the id of its commit set. wait: until it is finished, however long that takes."""
        state = pfs_pb2.FINISHED if wait else pfs_pb2.STARTED
        request = pfs_pb2.InspectCommitRequest(commit=self._commit(repo, id), wait=state)
        return _commit(self._answer(self._stub.InspectCommit, request, None if wait else _SECONDS))

    def head(self, repo: str, branch: str) -> str:
        """The id of the commit that a branch points at, "" for none. Raises Absent for a missing repo or branch."""
        named = pfs_pb2.Branch(repo=self._repo(repo), name=branch)
        return str(self._answer(self._stub.InspectBranch, pfs_pb2.InspectBranchRequest(branch=named)).head.id)

    def next_finished(self, repo: str, since: str, seconds: float) -> CommitFacts | None:
        """The first commit on master after another one, when it is finished; None if there was none in that time."""
        named = self._repo(repo)
        request = pfs_pb2.SubscribeCommitRequest(repo=named, branch="master", state=pfs_pb2.FINISHED, all=True)
        if since:
            getattr(request, "from").CopyFrom(self._commit(repo, since))
        with self._explained():
            call = self._stub.SubscribeCommit(request, timeout=seconds, metadata=self._metadata)
            try:
                return next((_commit(info) for info in call if info.commit.id != since), None)
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                    return None
                raise
            finally:
                call.cancel()

    def provenance(self, commit: CommitFacts) -> dict[str, str]:
        """The ids of all commits that a commit was made from, directly or not, by repo."""
        found: dict[str, str] = {}
        open_ = [commit]
        while open_:
            for repo, id in open_.pop().provenance:
                if repo not in found:
                    found[repo] = id
                    open_.append(self.commit(repo, id))
        return found

    def files(self, repo: str, commit: str, pattern: str) -> list[FileFacts]:
        """The files and directories that match a pattern, sorted by path; none in an empty commit."""
        request = pfs_pb2.GlobFileRequest(commit=self._commit(repo, commit), pattern=pattern)
        try:
            infos = list(self._messages(self._stub.GlobFile, request))
        except Absent:
            return []
        return sorted((_file(info) for info in infos), key=lambda each: each.path)

    def file(self, repo: str, commit: str, path: str) -> FileFacts:
        """A file or directory by its path. Raises Absent if there is none."""
        file = pfs_pb2.File(commit=self._commit(repo, commit), path=f"/{path}")
        return _file(self._answer(self._stub.InspectFile, pfs_pb2.InspectFileRequest(file=file)))

    def read(self, repo: str, commit: str, path: str, offset: int = 0, most: int | None = None) -> Iterator[bytes]:
        """A file's content, or at most so many bytes of it from an offset on, piece by piece."""
        with closing(self._pieces(self._stub.GetFile, repo, commit, f"/{path}", offset)) as pieces:
            for each in pieces:
                piece = each if most is None else each[:most]
                yield piece
                if most is not None and (most := most - len(piece)) <= 0:
                    return

    def archive(self, repo: str, commit: str, path: str) -> Generator[bytes]:
        """A directory, with all files below it, as a tar archive, piece by piece."""
        return self._pieces(self._stub.GetFileTAR, repo, commit, f"/{path}/")

    def _pieces(self, method: Any, repo: str, commit: str, path: str, offset: int = 0) -> Generator[bytes]:
        file = pfs_pb2.File(commit=self._commit(repo, commit), path=path)
        request = pfs_pb2.GetFileRequest(file=file, offset=offset)
        return (message.value for message in self._messages(method, request, None))

    def _answer(self, method: Any, request: Any, seconds: float | None = _SECONDS) -> Any:
        with self._explained():
            return method(request, timeout=seconds, metadata=self._metadata)

    def _messages(self, method: Any, request: Any, seconds: float | None = _SECONDS) -> Iterator[Any]:
        with self._explained():
            call = method(request, timeout=seconds, metadata=self._metadata)
            try:
                yield from call
            finally:
                call.cancel()  # the rest, if there is any

    def _repo(self, name: str) -> Any:
        return pfs_pb2.Repo(name=name, type="user", project=pfs_pb2.Project(name=self.at.project))

    def _commit(self, repo: str, id: str) -> Any:
        named = self._repo(repo)
        return pfs_pb2.Commit(repo=named, id=id, branch=pfs_pb2.Branch(repo=named))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            details = " ".join(str(error.details() or error.code().name.lower()).split())
            if error.code() == grpc.StatusCode.NOT_FOUND:
                raise Absent(details) from error
            if error.code() in _GONE or any(part in details for part in _CUT_OFF):
                raise Unreachable(f"the library's server at {self.at.url} does not answer") from error
            raise PachydermError(f"the library's server at {self.at.url} refused a call: {details}") from error
        except ValueError as error:  # gRPC's, for a call on a channel that was closed meanwhile
            raise Unreachable("the connection was closed") from error


_GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


def _commit(info: Any) -> CommitFacts:
    return CommitFacts(
        info.commit.repo.name if info.commit.repo.name else info.commit.branch.repo.name,
        info.commit.id,
        info.HasField("finished"),
        info.error,
        tuple((each.repo.name or each.branch.repo.name, each.id) for each in _direct(info)),
    )


def _direct(info: Any) -> Iterator[Any]:
    """The commits of users' repos; not those of the specifications."""
    for each in info.direct_provenance:
        if (each.repo.type or each.branch.repo.type) == "user":
            yield each


def _file(info: Any) -> FileFacts:
    is_directory = info.file_type == pfs_pb2.DIR
    return FileFacts(info.file.path.strip("/"), info.size_bytes, info.hash.hex(), is_directory)
