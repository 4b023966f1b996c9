"""Fixtures that tests of every package share: a server (a localpachd process, or the one PACHD_ADDRESS names), ports,
the command. Also chooses which tests run, with how many examples, and in which order."""

import gc
import itertools
import os
import uuid
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest
import python_pachyderm
from hypothesis import settings

from tests import example_counts, file_schedule, servers
from tests.command import Command
from tests.processes import Processes
from tests.servers import Localpachd, OwnPort, Pachd, StartPachd, Unique

# How long an example takes depends on the machine, and other tests may be running at the same time. `make test` and
# `make test-all` try the same examples each time, so that a failure comes from the change at hand; `make soak` tries
# random ones.
settings.register_profile("test", deadline=None, derandomize=True, max_examples=example_counts.USUAL // 2)
settings.register_profile("all", deadline=None, derandomize=True, max_examples=example_counts.USUAL)
settings.register_profile("soak", deadline=None, max_examples=10 * example_counts.USUAL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run all tests but those marked soak, as make test-all does")
    parser.addoption(
        "--soak",
        action="store_true",
        help="run the tests marked soak too, and ten times as many examples, chosen at random",
    )
    parser.addoption("--processes", default="1", help="run the files in so many processes; auto: as many as fit here")
    parser.addoption(
        servers.REGENERATE,
        action="store_true",
        help="let tests update every pipeline of the server PACHD_ADDRESS names",
    )
    parser.addoption(servers.LATE, action="store_true", help="let every localpachd be as late as a cluster")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile(next((each for each in ("soak", "all") if config.getoption(f"--{each}")), "test"))
    wanted = config.getoption("--processes")
    number = file_schedule.processes_here() if wanted == "auto" else int(wanted)
    if number > 1:
        config.pluginmanager.register(Processes(number, file_schedule.grouped))
    servers.always[:] = [servers.LATE] if config.getoption(servers.LATE) else []


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out, without importing it, what only `make test-all` runs, unless it is named."""
    if file_schedule.everything(config) or not file_schedule.only_in_all(collection_path):
        return None
    named = (Path(each.partition("::")[0]).resolve() for each in config.args)
    return None if any(each.is_relative_to(collection_path) for each in named) else True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects without garbage collection, which scans the growing modules and items again and again, for nothing; and
    exempts them from it for the rest of the session, as they live to its end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not file_schedule.everything(config):
        left_out = [item for item in items if item.get_closest_marker("only_in_all")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
    if not config.getoption("--soak"):
        for item in items:
            if item.get_closest_marker("soak"):
                item.add_marker(pytest.mark.skip(reason="takes long: make soak runs it"))


def _starting() -> Iterator[StartPachd]:
    running: list[Localpachd] = []

    def start(root: Path, *options: str, within: Sequence[str] = ()) -> Localpachd:
        running.append(servers.start(root, *options, within=within))
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


def _reaching(directories: pytest.TempPathFactory) -> list[str]:
    """The options of a server that may reach, by URLs, the files and the web sites of tests, and whose workers see the
    files."""
    files = str(directories.getbasetemp())
    return ["--file-urls", files, "--worker-sees", files, "--url-network", "127.0.0.0/8"]


@pytest.fixture(scope="session")
def localpachd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Localpachd]:
    """The localpachd that the session's tests share."""
    server = servers.start(tmp_path_factory.mktemp("pachd") / "root", *_reaching(tmp_path_factory))
    yield server
    server.kill()


@pytest.fixture(scope="session")
def late_localpachd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Localpachd]:
    """The same, as late as a cluster."""
    server = servers.start(tmp_path_factory.mktemp("late") / "root", servers.LATE, *_reaching(tmp_path_factory))
    yield server
    server.kill()


@pytest.fixture(scope="session")
def pachd(request: pytest.FixtureRequest) -> Pachd:
    """The server shared by tests for which any will do: the one PACHD_ADDRESS names, or else a localpachd. A parameter
    names another fixture that starts it."""
    named = os.environ.get("PACHD_ADDRESS")
    if named:
        return Pachd(named if "://" in named else f"grpc://{named}")
    server: Pachd = request.getfixturevalue(getattr(request, "param", "localpachd"))
    return server


@pytest.fixture(scope="session")
def newer_localpachd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Localpachd]:
    """One that answers as Pachyderm 2.12, which the session's tests share."""
    options = ("--compatible", "2.12", *_reaching(tmp_path_factory))
    server = servers.start(tmp_path_factory.mktemp("newer") / "root", *options)
    yield server
    server.kill()


@pytest.fixture(scope="session")
def client(pachd: Pachd) -> python_pachyderm.Client:
    """The official client, connected to the shared server."""
    return pachd.client()


@pytest.fixture
def own_port() -> Iterator[OwnPort]:
    """See OwnPort."""
    with servers.own_ports() as find:
        yield find


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
