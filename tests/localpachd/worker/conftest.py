"""Worker rooms of each kind: processes with `/pfs` mounted and without, and containers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localpachd.api.pps.loopback_servers import GrpcBatchServer
from localpachd.worker.tasks import BatchServer
from tests import containers
from tests.localpachd.worker.bench import BEST, NONE, Bench
from tests.localpachd.worker.plain_batches import PlainBatches

PATIENCE = 60.0
"""Seconds that a test may take. On an idle machine each takes less than one; commands that a test is to end sleep for
less than this, so that nothing waits for longer in vain."""

IN_CONTAINER = pytest.param("container", marks=pytest.mark.docker)

WITHOUT_PFS = pytest.param("no /pfs", marks=[pytest.mark.only_in_all] if BEST.mounts else [])
"""Left to `make test-all` where `/pfs` can be mounted, but for the tests that only run on the machine itself."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(PATIENCE))


def _bench(kind: str, root: Path, batches: BatchServer | None = None) -> Iterator[Bench]:
    if kind == "own /pfs" and not BEST.mounts:
        pytest.skip("/pfs cannot be mounted here")
    if kind == "container":
        containers.found()
    made = Bench(root, {"own /pfs": BEST, "no /pfs": NONE, "container": None}[kind], batches=batches or PlainBatches())
    yield made
    made.close()


@pytest.fixture(params=["own /pfs", WITHOUT_PFS, IN_CONTAINER])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A worker room: on this machine with `/pfs` mounted, without, and in containers."""
    yield from _bench(request.param, tmp_path)


@pytest.fixture(params=["own /pfs", WITHOUT_PFS, IN_CONTAINER])
def over_grpc(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """As `bench`, whose processes call NextDatum as those of users do."""
    yield from _bench(request.param, tmp_path, GrpcBatchServer())


@pytest.fixture(params=["own /pfs", "no /pfs"])
def at_home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A worker room on this machine itself, with `/pfs` mounted and without."""
    yield from _bench(request.param, tmp_path)


@pytest.fixture(params=["own /pfs", IN_CONTAINER])
def mounted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A worker room with `/pfs` mounted, on this machine and in containers."""
    yield from _bench(request.param, tmp_path)


@pytest.fixture
def mounted_at_home(tmp_path: Path) -> Iterator[Bench]:
    """A worker room on this machine itself, with `/pfs` mounted."""
    yield from _bench("own /pfs", tmp_path)


@pytest.fixture
def contained(tmp_path: Path) -> Iterator[Bench]:
    """A worker room in containers."""
    yield from _bench("container", tmp_path)
