"""What the tests of pachyderm-sdk share: a server (PACHD_ADDRESS names it, or it is a localpachd of their own), a
client, and a corner of the server that is cleaned up in the end. Their environment is one of their own: `make sdk`."""

import itertools
import os
import re
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from pachyderm_sdk import Client
from pachyderm_sdk.api import pfs, pps

ROOT = Path(__file__).parents[3]
_FIRST_LINE = re.compile(r"localpachd: listening on (grpc://127\.0\.0\.1:\d+)\n")


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the server answers: grpc://host:port."""
    named = os.environ.get("PACHD_ADDRESS")
    if named:
        yield named if "://" in named else f"grpc://{named}"
        return
    python = os.environ.get("LOCALPACHD_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
    log = tmp_path_factory.mktemp("pachd") / "log"
    with log.open("w") as said:
        server = subprocess.Popen(
            [python, "-m", "localpachd", "--root", str(log.with_name("root")), "--port", "0"],
            stdout=subprocess.PIPE, stderr=said, text=True, cwd=ROOT,
        )  # fmt: skip
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        match = _FIRST_LINE.fullmatch(line)
        assert match is not None, f"localpachd did not start: {line!r}\n{log.read_text()}"
        yield match[1]
    finally:
        server.kill()
        server.wait()


@pytest.fixture(scope="session")
def client(address: str) -> Client:
    """The official client."""
    parts = urlsplit(address)
    assert parts.hostname and parts.port
    return Client(host=parts.hostname, port=parts.port, tls=parts.scheme == "grpcs")


@pytest.fixture(scope="session")
def unique() -> Callable[[str], str]:
    """Makes names that nobody else has."""
    session, counter = uuid.uuid4().hex[:8], itertools.count()
    return lambda stem: f"{stem}-{session}-{next(counter)}"


class Place:
    """A corner of the server: what is made here goes in the end."""

    def __init__(self, client: Client, unique: Callable[[str], str]) -> None:
        self.client = client
        self.unique = unique
        self._made: list[Any] = []

    def repo(self) -> pfs.Repo:
        """A new repo."""
        repo = pfs.Repo(name=self.unique("in"))
        self.client.pfs.create_repo(repo=repo)
        self._made.append(repo)
        return repo

    def branch(self) -> pfs.Branch:
        """The branch master, not yet there, of a new repo."""
        return pfs.Branch(repo=self.repo(), name="master")

    def put(self, branch: pfs.Branch, **files: str) -> pfs.Commit:
        """Puts files in one commit and returns it."""
        with self.client.pfs.commit(branch=branch) as commit:
            for name, text in files.items():
                commit.put_file_from_bytes(path=f"/{name}", data=text.encode())
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
            return stream.read().decode()

    def clean_up(self) -> None:
        for each in reversed(self._made):
            if isinstance(each, pps.Pipeline):
                self.client.pps.delete_pipeline(pipeline=each, force=True)
            else:
                self.client.pfs.delete_repo(repo=each, force=True)


@pytest.fixture
def place(client: Client, unique: Callable[[str], str]) -> Iterator[Place]:
    """A corner of the server for one test."""
    corner = Place(client, unique)
    yield corner
    corner.clean_up()


@pytest.fixture(scope="session")
def refused() -> Callable[..., tuple[grpc.StatusCode, str]]:
    """The code and text with which a call is refused."""

    def refusal(call: Callable[..., Any], *arguments: Any, **fields: Any) -> tuple[grpc.StatusCode, str]:
        with pytest.raises((grpc.RpcError, ValueError)) as raised:
            result = call(*arguments, **fields)
            if hasattr(result, "__next__"):
                list(result)
        # The client wraps what goes wrong at the first byte of a file.
        error = raised.value if isinstance(raised.value, grpc.RpcError) else raised.value.__cause__
        return error.code(), error.details()

    return refusal
