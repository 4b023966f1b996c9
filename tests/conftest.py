"""A real server for the tests that need one: a localpachd process of their own, or the one PACHD_ADDRESS names."""

import itertools
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import python_pachyderm
from hypothesis import settings

# How long an example takes is the machine's business; other tests may be running beside this one.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

_FIRST_LINE = re.compile(r"localpachd: listening on (grpc://127\.0\.0\.1:\d+)\n")


@dataclass
class Pachd:
    """A server that answers at `address` (grpc://host:port); `process` where it is ours."""

    address: str
    process: subprocess.Popen[str] | None = None

    def client(self) -> python_pachyderm.Client:
        """A client of its own."""
        parts = urlsplit(self.address)
        return python_pachyderm.Client(host=parts.hostname, port=parts.port, tls=parts.scheme == "grpcs")

    def stop(self) -> None:
        """Ends the server as an operator would."""
        assert self.process is not None
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        finally:
            self.kill()

    def kill(self) -> None:
        """Ends the server as a power cut would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


StartPachd = Callable[..., Pachd]


def _start(root: Path, *options: str) -> Pachd:
    log = root.with_name(root.name + ".log")
    with log.open("a") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "localpachd", "--root", str(root), "--port", "0", *options],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    match = _FIRST_LINE.fullmatch(line)
    if match is None:
        process.kill()
        process.wait()
        raise AssertionError(f"localpachd did not start: {line!r}\n{log.read_text()}")
    return Pachd(match[1], process)


def _starting() -> Iterator[StartPachd]:
    running: list[Pachd] = []

    def start(root: Path, *options: str) -> Pachd:
        running.append(_start(root, *options))
        return running[-1]

    yield start
    for each in running:
        each.kill()


@pytest.fixture
def start_pachd() -> Iterator[StartPachd]:
    """Starts localpachd on a root directory, with further options; every server started is gone after the test."""
    yield from _starting()


@pytest.fixture(scope="module")
def start_shared_pachd() -> Iterator[StartPachd]:
    """As `start_pachd`, for servers that the tests of a module share: they are gone after the last of them."""
    yield from _starting()


@pytest.fixture(scope="session")
def localpachd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pachd]:
    """The localpachd that the session's tests share."""
    server = _start(tmp_path_factory.mktemp("pachd") / "root")
    yield server
    server.kill()


@pytest.fixture(scope="session")
def pachd(request: pytest.FixtureRequest) -> Pachd:
    """The server that tests share which do not care what it is: PACHD_ADDRESS names it, or it is a localpachd."""
    named = os.environ.get("PACHD_ADDRESS")
    if named:
        return Pachd(named if "://" in named else f"grpc://{named}")
    server: Pachd = request.getfixturevalue("localpachd")
    return server


@pytest.fixture(scope="session")
def client(pachd: Pachd) -> python_pachyderm.Client:
    """The official client, connected to the shared server."""
    return pachd.client()


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Makes names that nobody else on the server uses: `unique("in")` -> "in-3f2a-1"."""
    tag, numbers = uuid.uuid4().hex[:8], itertools.count()
    return lambda stem: f"{stem}-{tag}-{next(numbers)}"
