"""Power failures: all that was acknowledged is there after the next start, and nothing comes back without its content.

The cuts are real ones on a disk image (`tests.localpachd.power_disk`), at the moment at which the server is killed, and
those of a directory of which only what was synced is kept (`tests.localpachd.recorded_disk`)."""

import contextlib
import io
import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
import python_pachyderm

from tests.localpachd import power_disk, recorded_disk
from tests.localpachd.power_disk import PowerDisk
from tests.localpachd.recorded_disk import RecordedDisk
from tests.servers import Localpachd, StartPachd

_SWEEPING = (
    "import sys; from localpachd import server; from localpachd.storage import garbage_collector\n"
    "from localpachd.program import main\n"
    "server._BETWEEN_CHORES = 0.02; garbage_collector.KEPT = 0.0; sys.exit(main())"
)
"""A server that sweeps all the time, and deletes for good at once: where an order is wrong, this shows it."""


@pytest.fixture(params=["image", "recorded"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PowerDisk | RecordedDisk]:
    module = {"image": power_disk, "recorded": recorded_disk}[request.param]
    if obstacle := module.obstacle():
        pytest.skip(obstacle)
    with module.disk(tmp_path) as made:
        yield made


@pytest.fixture
def sweeping(disk: PowerDisk | RecordedDisk) -> Iterator[Localpachd]:
    process = subprocess.Popen(
        [sys.executable, "-c", _SWEEPING, "--root", str(disk.root / "root"), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | disk.variables,
        text=True,
    )
    assert process.stdout is not None
    address = re.search(r"grpc://\S+", process.stdout.readline())
    assert address is not None
    server = Localpachd(address[0], process)
    yield server
    server.kill()


@dataclass
class Load:
    """Clients that write until the server is gone, and what it has acknowledged to them."""

    server: Localpachd
    repos: set[str] = field(default_factory=set)
    deleting: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    files: dict[str, bytes] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    enough: threading.Event = field(default_factory=threading.Event)

    def make_repos(self) -> None:
        client = self.server.client()
        for number in range(100_000):
            client.create_repo(f"repo{number}")
            self.repos.add(f"repo{number}")

    def put(self) -> None:
        client = self.server.client()
        client.create_repo("files")
        for number in range(100_000):
            data = random.Random(number).randbytes(200_000 if number % 5 == 0 else 500)
            client.put_file_bytes(("files", "master"), f"/{number}", io.BytesIO(data))
            self.files[f"/{number}"] = data

    def make_secrets(self) -> None:
        client = self.server.client()
        for number in range(100_000):
            client.create_secret(f"secret{number}", {"key": "value"})
            self.secrets.add(f"secret{number}")

    def delete(self) -> None:
        client = self.server.client()
        for number in range(100_000):
            name = f"doomed{number}"
            client.create_repo(name)
            client.put_file_bytes((name, "master"), "/file", content_of(name))
            self.deleting.add(name)
            client.delete_repo(name)
            self.deleted.add(name)
            if number >= 8:
                self.enough.set()

    def run_and_kill(self) -> None:
        """Lets all write for a while, and kills the server while they do."""
        threads = [
            threading.Thread(target=quietly, args=(work,))
            for work in (self.make_repos, self.put, self.make_secrets, self.delete)
        ]
        for each in threads:
            each.start()
        assert self.enough.wait(60)
        self.server.kill()
        for each in threads:
            each.join()


def quietly(work: Callable[[], None]) -> None:
    with contextlib.suppress(grpc.RpcError):  # the server was killed
        work()


def content_of(repo: str) -> bytes:
    return random.Random(repo).randbytes(150_000)


def fsck(client: python_pachyderm.Client) -> list[str]:
    return [each.error for each in client.fsck()]


def test_all_that_was_acknowledged_survives_a_power_failure(
    disk: PowerDisk | RecordedDisk, sweeping: Localpachd, start_pachd: StartPachd
) -> None:
    load = Load(sweeping)
    load.run_and_kill()
    client = start_pachd(disk.cut() / "root").client()
    there = {each.repo.name for each in client.list_repo()}
    assert load.repos and load.repos <= there
    assert load.files
    for path, data in load.files.items():
        assert client.get_file(("files", "master"), path).read() == data
    assert load.secrets and load.secrets <= {each.secret.name for each in client.list_secret()}
    assert not load.deleted & there
    for name in load.deleting & there:  # its deletion was not acknowledged: it is wholly there
        assert client.get_file((name, "master"), "/file").read() == content_of(name)
    assert fsck(client) == []
