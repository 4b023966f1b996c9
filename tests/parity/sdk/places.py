"""Tools of the tests of pachyderm-sdk: a corner of the server. Does not know which server that is."""

from collections.abc import Callable
from typing import Any, Protocol

import grpc
from pachyderm_sdk import Client
from pachyderm_sdk.api import pfs, pps

Unique = Callable[[str], str]
"""Makes names that nobody else on the server uses: `unique("in")` -> "in-3f2a-1"."""


class Refusal(Protocol):
    """Makes a call that must fail, reads its answer to the end, and returns the status code and text."""

    def __call__(
        self, call: Callable[..., object], /, *arguments: object, **fields: object
    ) -> tuple[grpc.StatusCode, str]: ...


class Place:
    """A corner of the server: repos and pipelines under unique names, deleted in the end."""

    def __init__(self, client: Client, unique: Unique) -> None:
        self.client = client
        self.unique = unique
        self._made: list[pfs.Repo | pps.Pipeline] = []

    def repo(self) -> pfs.Repo:
        """A new repo."""
        repo = pfs.Repo(name=self.unique("in"))
        self.client.pfs.create_repo(repo=repo)
        self._made.append(repo)
        return repo

    def branch(self) -> pfs.Branch:
        """The branch master of a new repo; it does not exist yet."""
        return pfs.Branch(repo=self.repo(), name="master")

    def put(self, branch: pfs.Branch, **files: str) -> pfs.Commit:
        """Puts files in one commit and returns it, once it is finished."""
        with self.client.pfs.commit(branch=branch) as commit:
            for name, text in files.items():
                commit.put_file_from_bytes(path=f"/{name}", data=text.encode())
        commit.wait()
        return pfs.Commit(repo=branch.repo, id=commit.id)

    def pipeline(self, script: str, input_: pps.Input, **fields: Any) -> pps.Pipeline:
        """A pipeline that runs a shell script."""
        pipeline = self.name_pipeline()
        transform = pps.Transform(image="ubuntu:20.04", cmd=["sh", "-e"], stdin=script.splitlines())
        self.client.pps.create_pipeline(pipeline=pipeline, transform=transform, input=input_, **fields)
        return pipeline

    def name_pipeline(self) -> pps.Pipeline:
        """The name of a pipeline that the test will make."""
        pipeline = pps.Pipeline(name=self.unique("p"), project=pfs.Project(name="default"))
        self._made.append(pipeline)
        return pipeline

    def read(self, file: pfs.File) -> str:
        """A file's text."""
        with self.client.pfs.pfs_file(file=file) as stream:
            return str(stream.read(), "utf-8")

    def clean_up(self) -> None:
        """Deletes all of it."""
        for each in reversed(self._made):
            if isinstance(each, pps.Pipeline):
                self.client.pps.delete_pipeline(pipeline=each, force=True)
            else:
                self.client.pfs.delete_repo(repo=each, force=True)
