"""A real server for the tests that need one: a localpachd process of their own, or the one PACHD_ADDRESS names."""

import itertools
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import python_pachyderm
from hypothesis import settings

from tests import servers
from tests.command import Command
from tests.servers import Localpachd, Pachd, StartPachd, Unique

os.environ["COLUMNS"] = "120"  # so wide is what commands print

# How long an example takes depends on the machine, and other tests may be running at the same time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def _starting() -> Iterator[StartPachd]:
    running: list[Localpachd] = []

    def start(root: Path, *options: str) -> Localpachd:
        running.append(servers.start(root, *options))
        return running[-1]

    yield start
    for each in running:
        each.kill()


@pytest.fixture
def start_pachd() -> Iterator[StartPachd]:
    """Starts localpachd on a root directory, with further options; every server started is killed after the test."""
    yield from _starting()


@pytest.fixture(scope="module")
def start_shared_pachd() -> Iterator[StartPachd]:
    """As `start_pachd`, for servers that the tests of a module share: they are killed after the last of them."""
    yield from _starting()


@pytest.fixture(scope="session")
def localpachd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Localpachd]:
    """The localpachd that the session's tests share."""
    server = servers.start(tmp_path_factory.mktemp("pachd") / "root")
    yield server
    server.kill()


@pytest.fixture(scope="session")
def pachd(request: pytest.FixtureRequest) -> Pachd:
    """The server shared by tests for which any will do: the one PACHD_ADDRESS names, or else a localpachd."""
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
def unique() -> Unique:
    """See Unique."""
    tag, numbers = uuid.uuid4().hex[:8], itertools.count()
    return lambda stem: f"{stem}-{tag}-{next(numbers)}"


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """The `lookalike` command, typed in a directory of the test's own."""
    (tmp_path / "here").mkdir()
    return Command(tmp_path / "here")
