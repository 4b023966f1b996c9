"""Commands and jobs on a server whose disk is full: they say so, lose nothing, and continue when there is room."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection, ServerTarget, connect
from tests import servers
from tests.command import Command, next_line
from tests.disks import MOUNTED, SIZE, SmallDisk, can_mount
from tests.pipelines.stand_ins import RENDER, deploy_specs, shell_spec, wait_for
from tests.servers import LATE
from tests.stages.scenes import saved


def connection(disk: SmallDisk) -> Connection:
    return connect(ServerTarget(disk.server.address))


@pytest.fixture
def disk(request: pytest.FixtureRequest, tmp_path: Path, command: Command) -> Iterator[SmallDisk]:
    place = tmp_path / "disk"
    place.mkdir()
    if not can_mount(place):
        pytest.skip("no disk can be mounted here")
    options = [LATE] if getattr(request, "param", "") == "late" and LATE not in servers.always else []
    # The log is beside the root, on the disk below the small one.
    options += ["--worker-sees", str(tmp_path)] if Path("/tmp") in tmp_path.parents else []
    server = servers.start(place / "root", *options, within=[*MOUNTED, str(place)])
    command.environment["PACHD_ADDRESS"] = server.address
    yield SmallDisk(server, place / "root")
    server.kill()


def render(disk: SmallDisk, gate: Path, grid: str) -> None:
    """Deploys a `render` with one attempt at each datum, once the gate is there; its grid is what a command prints."""
    script = wait_for(gate) + RENDER.replace("echo grid", grid)
    deploy_specs(connection(disk), shell_spec("render", "queries", script, datum_tries=1))


@pytest.mark.parametrize(
    ("disk", "grid"),
    [
        pytest.param("at once", "echo grid", marks=pytest.mark.only_in_all, id="for its record"),
        pytest.param("late", f"head -c {4 << 20} /dev/zero", id="for its output"),
    ],
    indirect=["disk"],
)
def test_a_job_waits_for_room(disk: SmallDisk, command: Command, tmp_path: Path, grid: str) -> None:
    render(disk, tmp_path / "gate", grid)
    (command.directory / "a").write_bytes(saved(Image.new("L", (8, 8))))
    typed = command.start("query", "-v", "a")
    next_line(typed, "put 1 file")
    jobs = ProjectJobs(connection(disk))
    while (job := jobs.newest("render")) is None or job.state != "running":
        assert typed.poll() is None
    disk.fill()
    (tmp_path / "gate").touch()
    waits = f"render: no space left on the disk of {disk.root}: free some, and the job continues by itself\n"
    next_line(typed, waits.strip())
    assert waits in command.says("status")
    disk.free()
    said, complained = typed.communicate(timeout=60)
    assert (typed.returncode, complained) == (0, "")
    assert waits not in said
    assert (command.directory / "results" / "a" / "index.html").is_file()
    assert "no space" not in command.says("status")


def test_a_put_fails_and_loses_nothing(disk: SmallDisk, command: Command) -> None:
    connection(disk).client.create_repo("queries")
    small = saved(Image.new("L", (8, 8)))
    large = small + os.urandom(3 << 20)
    (command.directory / "small").write_bytes(small)
    command.says("query", "small", "--no-wait")
    (command.directory / "large").write_bytes(large)
    disk.fill()
    said = command.fails("query", "large", "--no-wait")
    assert said == f"no space left on the disk of {disk.root}: free some"
    assert "the repo models" in command.says("status")
    disk.free()
    assert "its jobs are running" in command.says("query", "large", "--no-wait")
    kept = Repository(connection(disk), "queries")
    assert (kept.read("/small"), kept.read("/large")) == (small, large)


def test_a_server_cannot_start_without_room(tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    if not can_mount(place):
        pytest.skip("no disk can be mounted here")
    up = f"{sys.executable} -P -m pipelines.cli up --root {place}/root --port 0"
    filled = ["sh", "-c", f"head -c {2 * SIZE} /dev/zero > {place}/ballast; exec {up}"]
    done = subprocess.run([*MOUNTED, str(place), *filled], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    said = f"lookalike: localpachd did not start: no space left on the disk of {place}/root: free some\n"
    assert done.stderr.endswith(said)
