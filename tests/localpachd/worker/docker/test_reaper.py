"""The removal of containers that a server left behind: by its reaper, and by the next server."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from localpachd.worker.docker import engine
from localpachd.worker.docker.container import Container
from localpachd.worker.docker.workplaces import LABEL, Docker
from localpachd.worker.workplace import Stores
from tests import containers
from tests.localpachd.worker.bench import Bench

_KILLED = """
import sys
from pathlib import Path
from localpachd.api.pps.worker import GrpcBatchServer
from localpachd.db import Database
from localpachd.storage.chunks import Chunks
from localpachd.worker.docker import engine
from localpachd.worker.docker.workplaces import Docker
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.runner import LocalRunner
from localpachd.worker.secrets import Secrets
from localpachd.worker.tasks import CancelToken, DatumWork, Task
from localpachd.worker.workplace import Stores
root = Path(sys.argv[1])
root.mkdir()
stores = Stores(Database(root / "db"), Chunks(root / "chunks"), Secrets(root / "secrets"))
runner = LocalRunner(root / "scratch", GpuPool(), GrpcBatchServer(), Docker(stores, engine.find(), root, print))
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
    assert containers.eventually(lambda: not containers.running(f"{LABEL}={root}"))


@pytest.mark.docker
def test_leftovers_go_when_the_next_server_starts(contained: Bench, tmp_path: Path) -> None:
    """As after a power cut, when no reaper is left."""
    labels = {"Labels": {LABEL: str(tmp_path / "root")}}
    left = Container(engine.find(), f"left-{uuid.uuid4().hex}", {"Image": contained.image, "Cmd": ["true"], **labels})
    stores = Stores(contained.db, contained.chunks, contained.secrets)
    Docker(stores, engine.find(), tmp_path / "other", lambda: None).close()
    assert containers.running(f"{LABEL}={tmp_path / 'root'}") == [left.id], "that of another server must stay"
    Docker(stores, engine.find(), tmp_path / "root", lambda: None).close()
    assert containers.running(f"{LABEL}={tmp_path / 'root'}") == []
