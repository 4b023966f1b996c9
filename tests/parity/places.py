"""Tools of the parity tests: a corner of the server, and the messages that name things in it. Knows neither which
server that is nor how it is built."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import grpc
from python_pachyderm import Client
from python_pachyderm.mixin.pfs import ModifyFileClient
from python_pachyderm.pfs import SubcommitType, commit_from
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.servers import Unique

IMAGE = "ubuntu:20.04"

_TRIES = 10
_Answer = TypeVar("_Answer")

NOBODY = "0" * 12 + "4" + "0" * 19
"""A valid id that no commit, job or transaction has."""

INVALID = grpc.StatusCode.INVALID_ARGUMENT
UNKNOWN, NOT_FOUND, EXISTS = grpc.StatusCode.UNKNOWN, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.ALREADY_EXISTS


class MakeInput(Protocol):
    """Makes a pfs input; `fields` are further fields of it."""

    def __call__(self, repo: str, glob: str = "/*", **fields: Any) -> pps_pb2.Input: ...


class Refusal(Protocol):
    """Makes a call that must fail, reads its answer to the end, and returns the status code and text."""

    def __call__(
        self, call: Callable[..., object], /, *arguments: object, **options: object
    ) -> tuple[grpc.StatusCode, str]: ...


class ByVersion(Protocol):
    """Chooses by the server's version: what 2.7 answers, or what 2.12 does."""

    def __call__(self, before: _Answer, since: _Answer) -> _Answer: ...


class FsckReport(Protocol):
    """What fsck says about a test's own repos and about output that should be gone; `fields` are those of its request.
    Pachyderm also reports what others left behind: heads that disagree after a squash, content of deleted repos."""

    def __call__(self, *repos: str, **fields: bool | pfs_pb2.Commit) -> list[str]: ...


def repo_of(name: str) -> pfs_pb2.Repo:
    """A user repo of the project default."""
    return pfs_pb2.Repo(name=name, type="user", project=pfs_pb2.Project(name="default"))


def branch_of(repo: str, name: str = "master") -> pfs_pb2.Branch:
    """A branch of such a repo."""
    return pfs_pb2.Branch(repo=repo_of(repo), name=name)


def commit_of(repo: str, id_: str = "", branch: str = "") -> pfs_pb2.Commit:
    """A commit of such a repo by its id, the head of a branch, or both at once, as requests may say it."""
    return pfs_pb2.Commit(repo=repo_of(repo), id=id_, branch=branch_of(repo, branch))


def finished(client: Client, repo: str, reference: str = "master") -> pfs_pb2.CommitInfo:
    """The commit that a branch, an id or an ancestry names, once it is finished. FinishCommit may return before that,
    and so may a write that is a commit of its own. Reading waits by itself, but a child commit needs a finished parent
    to read, to write to a directory and to be squashed."""
    (info,) = client.wait_commit((repo, None, reference))
    return info


def content(client: Client, commit: SubcommitType, path: str) -> bytes:
    """A file's bytes. The client's own get_file fails if a server sends no message for an empty file."""
    request = pfs_pb2.GetFileRequest(file=pfs_pb2.File(commit=commit_from(commit), path=path))
    return b"".join(each.value for each in pfs_pb2_grpc.APIStub(client._channel).GetFile(request))


def listed_repos(client: Client, **filters: Any) -> list[pfs_pb2.RepoInfo]:
    """The server's repos; `filters` are further arguments of list_repo. Pachyderm 2.7 describes them one after the
    other, and fails when somebody else deletes one meanwhile."""
    for _ in range(_TRIES):
        try:
            return list(client.list_repo(**filters))
        except grpc.RpcError as error:
            if error.code() is not NOT_FOUND:
                raise
    return list(client.list_repo(**filters))


def delete_marked(client: Client, mark: str) -> None:
    """Deletes the pipelines, repos, projects and secrets of the server whose names, or projects' names, contain the
    mark."""
    for info in [each.pipeline for each in client.list_pipeline()]:
        if mark in info.name or mark in info.project.name:
            client.delete_pipeline(info.name, force=True, project_name=info.project.name)
    for repo in [each.repo for each in listed_repos(client)]:
        if mark in repo.name or mark in repo.project.name:
            client.delete_repo(repo.name, force=True, project_name=repo.project.name)
    for project in [each.project.name for each in client.list_project()]:
        if mark in project:
            client.delete_project(project)
    for secret in [each.secret.name for each in client.list_secret()]:
        if mark in secret:
            client.delete_secret(secret)


class Place:
    """A corner of the server: repos and pipelines under unique names."""

    def __init__(self, client: Client, unique: Unique) -> None:
        self.client = client
        self.unique = unique

    def repo(self, stem: str = "in") -> str:
        """Makes a repo and returns its name."""
        name = self.unique(stem)
        self.client.create_repo(name)
        return name

    def put(self, repo: str, **files: str | bytes | None) -> str:
        """Puts files (None deletes one) in one commit on master and returns its id, once it is finished. `a_b` is the
        file /a/b."""
        with self.client.commit(repo, "master") as commit:
            for name, given in files.items():
                path = "/" + name.replace("_", "/")
                if given is None:
                    self.client.delete_file(commit, path)
                else:
                    data = given.encode() if isinstance(given, str) else given
                    self.client.put_file_bytes(commit, path, data)
        return str(finished(self.client, repo, commit.id).commit.id)

    @contextmanager
    def stream(self, repo: str) -> Iterator[ModifyFileClient]:
        """A stream of changes that is a commit of its own on master, which is finished at the end of the block."""
        with self.client.modify_file_client((repo, "master")) as files:
            yield files
        finished(self.client, repo)

    def pipeline(self, script: str, name: str = "", transform: pps_pb2.Transform | None = None, **fields: Any) -> str:
        """Makes (or, given a name, updates) a pipeline that runs a shell script and returns its name. `transform` is
        merged into its own, `fields` are further arguments of create_pipeline."""
        made = name or self.unique("p")
        whole = pps_pb2.Transform(image=IMAGE, cmd=["sh", "-e"], stdin=script.splitlines())
        if transform is not None:
            whole.MergeFrom(transform)
        self.client.create_pipeline(made, transform=whole, update=bool(name), **fields)
        return made

    def job(self, pipeline: str, commit: str) -> pps_pb2.JobInfo:
        """The job of a commit set, once it has ended."""
        (info,) = self.client.inspect_job(commit, pipeline_name=pipeline, wait=True, details=True)
        return info

    def read(self, repo: str, path: str, commit: str = "") -> str:
        """A file's text, of the head of master or of a commit."""
        return content(self.client, (repo, "master", commit) if commit else (repo, "master"), path).decode()

    def paths(self, repo: str, commit: str = "") -> list[str]:
        """The paths of all files."""
        found = self.client.walk_file((repo, "master", commit) if commit else (repo, "master"), "/")
        return [info.file.path for info in found if info.file_type == pfs_pb2.FILE]
