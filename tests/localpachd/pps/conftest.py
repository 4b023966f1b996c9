"""Engines in temporary directories: pfs, pps and workers without a server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localpachd.worker.gpu_pool import GpuPool
from tests.localpachd.pps.engine import Engine


@pytest.fixture
def gpus() -> GpuPool:
    return GpuPool()


@pytest.fixture
def engine(tmp_path: Path, gpus: GpuPool) -> Iterator[Engine]:
    running = Engine(tmp_path, gpus)
    yield running
    running.close()


@pytest.fixture(scope="session")
def start() -> Callable[[Path, GpuPool], Engine]:
    """Starts an engine on a directory, for tests that need several and close them."""
    return Engine
