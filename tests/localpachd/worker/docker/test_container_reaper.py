"""The removal of containers that a server left behind: by its reaper, and by the next server."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from localpachd.worker.docker import container_engine
from localpachd.worker.docker.container import Container
from localpachd.worker.docker.container_workplaces import LABEL, DockerBackend
from localpachd.worker.workplace import WorkerStores
from tests import containers
from tests.conditions import until
from tests.localpachd.worker.bench import Bench

_KILLED = """
import sys
from pathlib import Path
from localpachd.api.pps.loopback_servers import GrpcBatchServer
from localpachd.database import Database
from localpachd.storage.chunk_store import ChunkStore
from localpachd.worker.docker import container_engine
from localpachd.worker.docker.container_workplaces import DockerBackend
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.local_runner import LocalRunner
from localpachd.worker.secret_store import SecretStore
from localpachd.worker.tasks import CancelToken, DatumWork, Task
from localpachd.worker.workplace import WorkerStores
root = Path(sys.argv[1])
root.mkdir()
stores = WorkerStores(Database(root / "db"), ChunkStore(root / "chunks"), SecretStore(root / "secrets"))
backend = DockerBackend(stores, container_engine.find(), root, print)
runner = LocalRunner(root / "scratch", GpuPool(), GrpcBatchServer(), backend)
task = Task(("sh", "-c", "echo working; sleep 50"), image=sys.argv[2])
def log(line):
    if line.user:
        print(line.message, flush=True)
runner.run_set(task, [DatumWork("d", (), {})], print, log, CancelToken())
"""


@pytest.mark.docker
def test_containers_die_with_the_server(contained: Bench, tmp_path: Path) -> None:
    root = tmp_path / "killed"
    server = subprocess.Popen([sys.executable, "-c", _KILLED, str(root), contained.image], stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdout.readline() == b"working\n"
    assert len(containers.running(f"{LABEL}={root}")) == 1
    server.kill()
    server.wait()
    server.stdout.close()
    until(lambda: not containers.running(f"{LABEL}={root}"))


@pytest.mark.docker
def test_leftovers_go_when_the_next_server_starts(contained: Bench, tmp_path: Path) -> None:
    """As after a power cut, when no reaper is left."""
    labels = {"Labels": {LABEL: str(tmp_path / "root")}}
    left = Container(
        container_engine.find(), f"left-{uuid.uuid4().hex}", {"Image": contained.image, "Cmd": ["true"], **labels}
    )
    stores = WorkerStores(contained.db, contained.chunks, contained.secrets)
    DockerBackend(stores, container_engine.find(), tmp_path / "other", lambda: None).close()
    assert containers.running(f"{LABEL}={tmp_path / 'root'}") == [left.id], "that of another server must stay"
    DockerBackend(stores, container_engine.find(), tmp_path / "root", lambda: None).close()
    assert containers.running(f"{LABEL}={tmp_path / 'root'}") == []
