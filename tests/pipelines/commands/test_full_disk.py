"""Commands and jobs on a server whose disk is full: they say so, lose nothing, and continue when there is room."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.client.deployment.deployment import deploy
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection, ServerTarget, connect
from pipelines.specifications import pipeline_specs
from tests import servers
from tests.command import Command
from tests.disks import MOUNTED, SIZE, SmallDisk, can_mount
from tests.servers import LATE


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


SHEET = r"""
while [ ! -e {gate} ]; do sleep 0.05; done
out="${{LOCALPACHD_PFS:-/pfs}}/out/$(basename "$queries")"
mkdir -p "$out"
echo > "$out/neighbors.jsonl"
{grid} > "$out/grid.png"
echo page > "$out/index.html"
"""


def render(disk: SmallDisk, directory: Path, grid: str) -> None:
    """Deploys a `render` with one attempt at each datum: its grid is what a command prints, once `gate` is there."""
    document = {
        "pipeline": {"name": "render"},
        "input": {"pfs": {"name": "queries", "repo": "queries", "branch": "master", "glob": "/*"}},
        "datum_tries": 1,
        "transform": {
            "image": "shell:1",
            "cmd": ["sh", "-e"],
            "stdin": SHEET.format(gate=directory / "gate", grid=grid).splitlines(),
        },
    }
    (directory / "render.json").write_text(json.dumps(document))
    deploy(connection(disk), [pipeline_specs.read(directory / "render.json")])


@pytest.mark.parametrize(
    ("disk", "grid"),
    [("at once", "echo grid"), ("late", f"head -c {4 << 20} /dev/zero")],
    indirect=["disk"],
    ids=["for its record", "for its output"],
)
def test_a_job_waits_for_room(disk: SmallDisk, command: Command, tmp_path: Path, grid: str) -> None:
    render(disk, tmp_path, grid)
    (command.directory / "a").write_text("x")
    typed = command.start("query", "a")
    assert typed.stdout is not None
    while "put 1 file" not in typed.stdout.readline():
        assert typed.poll() is None
    jobs = ProjectJobs(connection(disk))
    while (job := jobs.newest("render")) is None or job.state != "running":
        assert typed.poll() is None
    disk.fill()
    (tmp_path / "gate").touch()
    waits = f"render: no space left on the disk of {disk.root}: free some, and the job continues by itself\n"
    while waits not in (line := typed.stdout.readline()):
        assert line, typed.communicate()
    assert waits in command.says("status")
    disk.free()
    said, complained = typed.communicate(timeout=60)
    assert (typed.returncode, complained) == (0, "")
    assert waits not in said
    assert (command.directory / "results" / "a" / "index.html").is_file()
    assert "no space" not in command.says("status")


def test_a_put_fails_and_loses_nothing(disk: SmallDisk, command: Command) -> None:
    connection(disk).client.create_repo("queries")
    (command.directory / "small").write_text("x")
    command.says("query", "small", "--no-wait")
    (command.directory / "large").write_bytes(os.urandom(3 << 20))
    disk.fill()
    said = command.fails("query", "large", "--no-wait")
    assert said == f"no space left on the disk of {disk.root}: free some"
    assert "the repo models" in command.says("status")
    disk.free()
    assert re.search("put 1 file into queries", command.says("query", "large", "--no-wait"))
    kept = Repository(connection(disk), "queries")
    assert (kept.read("/small"), len(kept.read("/large"))) == (b"x", 3 << 20)


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
