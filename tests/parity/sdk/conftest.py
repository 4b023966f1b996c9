"""Fixtures of the tests of pachyderm-sdk: a server (PACHD_ADDRESS names it, or it is a localpachd of their own), a
client, and a corner of the server. They run in an environment of their own: `make sdk`."""

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

from tests.parity.sdk.places import Place, Refusal, Unique

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
def unique() -> Unique:
    """See Unique."""
    session, counter = uuid.uuid4().hex[:8], itertools.count()
    return lambda stem: f"{stem}-{session}-{next(counter)}"


@pytest.fixture(autouse=True)
def _skip_before(request: pytest.FixtureRequest) -> None:
    """Skips a test marked since("2.8") on an older Pachyderm; localpachd has the calls of all versions."""
    for marker in request.node.iter_markers("since"):
        (first,) = marker.args
        server = request.getfixturevalue("client").get_version()
        older = (server.major, server.minor) < tuple(map(int, first.split(".")))
        if older and not server.additional.startswith("+localpachd"):
            pytest.skip(f"needs Pachyderm {first}: the server is {server.major}.{server.minor}.{server.micro}")


@pytest.fixture(autouse=True)
def _skip_on_pachyderm(request: pytest.FixtureRequest) -> None:
    """Skips a test marked only_localpachd on another server."""
    for marker in request.node.iter_markers("only_localpachd"):
        server = request.getfixturevalue("client").get_version()
        if not server.additional.startswith("+localpachd"):
            pytest.skip(f"only on localpachd: {marker.args[0]}")


@pytest.fixture
def place(client: Client, unique: Unique) -> Iterator[Place]:
    """A corner of the server for one test."""
    corner = Place(client, unique)
    yield corner
    corner.clean_up()


@pytest.fixture(scope="session")
def refusal() -> Refusal:
    """See Refusal."""

    def refuse(call: Callable[..., object], /, *arguments: object, **fields: object) -> tuple[grpc.StatusCode, str]:
        with pytest.raises((grpc.RpcError, ValueError)) as raised:
            result = call(*arguments, **fields)
            if isinstance(result, Iterator):
                list(result)
        # The client wraps what goes wrong at the first byte of a file.
        error: Any = raised.value if isinstance(raised.value, grpc.RpcError) else raised.value.__cause__
        return error.code(), error.details()

    return refuse
