"""What the parity tests share. They know neither which server they run against nor how it is built."""

from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
import python_pachyderm
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc
from python_pachyderm.proto.v2.pps import pps_pb2

IMAGE = "ubuntu:20.04"

collect_ignore = ["sdk"]  # it has an environment of its own: make sdk


class Place:
    """A corner of the server: repos and pipelines under names of their own, deleted in the end."""

    def __init__(self, client: python_pachyderm.Client, unique: Callable[[str], str]) -> None:
        self.client = client
        self.unique = unique
        self._repos: list[str] = []
        self._pipelines: list[str] = []

    def repo(self, stem: str = "in") -> str:
        """Makes a repo and returns its name."""
        name = self.unique(stem)
        self.client.create_repo(name)
        self._repos.append(name)
        return name

    def put(self, repo: str, **files: str | bytes | None) -> str:
        """Puts files (None deletes one) in one commit on master and returns its id. `a_b` is the file /a/b."""
        with self.client.commit(repo, "master") as commit:
            for name, content in files.items():
                path = "/" + name.replace("_", "/")
                if content is None:
                    self.client.delete_file(commit, path)
                else:
                    data = content.encode() if isinstance(content, str) else content
                    self.client.put_file_bytes(commit, path, data)
        return str(commit.id)

    def pipeline(self, script: str, name: str = "", transform: Any = None, **fields: Any) -> str:
        """Makes (or, given a name, updates) a pipeline that runs a shell script and returns its name. `transform` adds
        to what is run."""
        made = name or self.unique("p")
        what = pps_pb2.Transform(image=IMAGE, cmd=["sh", "-e"], stdin=script.splitlines())
        if transform is not None:
            what.MergeFrom(transform)
        self.client.create_pipeline(made, transform=what, update=bool(name), **fields)
        if not name:
            self._pipelines.append(made)
        return made

    def job(self, pipeline: str, commit: str) -> Any:
        """The job of a commit set, when it is over."""
        (info,) = self.client.inspect_job(commit, pipeline_name=pipeline, wait=True, details=True)
        return info

    def read(self, repo: str, path: str, commit: str = "") -> str:
        """A file's text, of the head of master or of a commit."""
        with self.client.get_file((repo, "master", commit) if commit else (repo, "master"), path) as file:
            return file.read().decode()

    def paths(self, repo: str, commit: str = "") -> list[str]:
        """The paths of all files."""
        found = self.client.walk_file((repo, "master", commit) if commit else (repo, "master"), "/")
        return [info.file.path for info in found if info.file_type == pfs_pb2.FILE]

    def clean_up(self) -> None:
        for name in reversed(self._pipelines):
            self.client.delete_pipeline(name, force=True)
        for name in reversed(self._repos):
            self.client.delete_repo(name, force=True)


@pytest.fixture
def place(client: python_pachyderm.Client, unique: Callable[[str], str]) -> Iterator[Place]:
    """A corner of the server for one test."""
    corner = Place(client, unique)
    yield corner
    corner.clean_up()


def _pfs(repo: str, glob: str = "/*", **fields: Any) -> Any:
    return pps_pb2.Input(pfs=pps_pb2.PFSInput(repo=repo, glob=glob, **fields))


@pytest.fixture
def pfs() -> Callable[..., Any]:
    """Makes a pfs input."""
    return _pfs


@pytest.fixture(scope="session")
def stub(client: python_pachyderm.Client) -> Any:
    """The generated stub of pfs, for what the client's own methods cannot say."""
    return pfs_pb2_grpc.APIStub(client._channel)


def _refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises((grpc.RpcError, ConnectionError)) as refused:
        result = call(*arguments, **options)
        if result is not None and not hasattr(result, "DESCRIPTOR"):
            list(result)
    # The client wraps what goes wrong at the first byte of a file.
    error = refused.value if isinstance(refused.value, grpc.RpcError) else refused.value.__cause__
    return error.code(), error.details()


@pytest.fixture(scope="session")
def refusal() -> Callable[..., tuple[grpc.StatusCode, str]]:
    """Makes a call that must fail, reads its answer to the end, and returns the status code and text."""
    return _refusal
