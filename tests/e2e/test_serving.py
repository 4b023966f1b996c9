"""The service on real pipelines: its answers are those of the batch pipelines, and it follows the library; here and as
a pipeline."""

import http.client
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.services import service_credentials, service_discovery, service_roles
from tests import fake_gpus
from tests.certificates import self_signed
from tests.command import Command, next_line
from tests.conditions import until
from tests.e2e.world import MakeWorld, Paint, World
from tests.servers import OwnPort

pytestmark = pytest.mark.timeout(600)

PNG = {"Content-Type": "image/png"}

Neighbours = list[tuple[str, float, list[str]]]
"""Id, distance and true paths of each, the nearest first."""

NODE_PORTS = range(30000, 32768)


@pytest.fixture(scope="module")
def world(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> World:
    """A library of twelve pictures, and a query that is near one of them."""
    made = make_world("serving")
    made.deploy()
    made.push(backbones["keras"])
    made.add({f"trip/{n}.png": paint(n) for n in range(12)})
    made.settle(made.query("mine.png", paint(3, 1)))
    return made


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def asked(
    url: str, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    return answer.status, answer.read()


def search(url: str, picture: bytes, headers: dict[str, str] | None = None) -> dict[str, Any]:
    status, body = asked(url, "POST", "/search?k=3", picture, PNG | (headers or {}))
    assert status == 200, body
    found: dict[str, Any] = json.loads(body)
    return found


def nearest(answer: dict[str, Any]) -> Neighbours:
    """The three nearest in an answer of the service, which has more where some are near-duplicates."""
    found = answer["neighbors"][:3]
    return [(each["id"], each["distance"], [source["path"] for source in each["sources"]]) for each in found]


def in_batch(world: World, entry: str) -> Neighbours:
    """Those of the only picture of an entry, as the pipelines answered."""
    line = json.loads(world.content("render")[f"/{entry}/neighbors.jsonl"])
    return [(each["id"], each["distance"], each["sources"]) for each in line["neighbors"]]


@contextmanager
def started(world: World, *arguments: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """`lookalike serve`, once it listens; gives the process and its URL."""
    environment = {"PACHD_ADDRESS": world.pachd.address, "PACH_CONFIG": str(world.scratch / "none")}
    command = Command(world.scratch, environment)
    process = command.start("serve", "--port", "0", "--no-browser", *arguments, stderr=subprocess.STDOUT)
    try:
        yield process, next_line(process, "lookalike serve: ").split()[-1]
    finally:
        process.kill()
        process.communicate()


@contextmanager
def serving(world: World, *arguments: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The same, once it can answer."""
    with started(world, *arguments) as (process, url):
        next_line(process, "ready in ")
        yield process, url


def test_its_answer_is_the_batch_answer_and_it_finds_an_added_picture(
    world: World, paint: Paint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in fake_gpus.variables(tmp_path / "log").items():
        monkeypatch.setenv(name, value)
    with serving(world) as (process, url):
        assert (tmp_path / "log").read_text() == "0 GPU\n", "it uses a GPU that the server leases to workers"
        answer = search(url, paint(3, 1))
        assert nearest(answer) == in_batch(world, "mine.png")
        assert answer["commits"]["index"] == world.newest("index")
        assert asked(url, "GET", answer["neighbors"][0]["original"]) == (200, paint(3))
        status, page = asked(url, "GET", f"/trace/{answer['neighbors'][0]['id']}")
        assert status == 200
        assert b"trip/3.png" in page
        added = world.add({"trip/near.png": paint(3, 1)})
        world.settle(added)
        next_line(process, "13 pictures")
        answer = search(url, paint(3, 1))
        assert answer["commits"]["index"] == added
        assert answer["neighbors"][0]["distance"] == 0
        assert nearest(answer)[0][2] == ["trip/near.png"]
        assert nearest(answer) == in_batch(world, "mine.png")
        world.settle(world.remove("trip/near.png"))


def test_it_says_what_this_machine_lacks_and_goes_on(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with started(world) as (process, url):
        assert next_line(process, "trying again").startswith(str(tmp_path / "file"))
        status, body = asked(url, "GET", "/ready")
        assert (status, json.loads(body)["state"]) == (503, "failed")


@pytest.mark.only_in_all
def test_it_serves_an_earlier_library(world: World, paint: Paint) -> None:
    before = world.newest("index")
    world.settle(world.add({"trip/later.png": paint(40)}))
    with serving(world, "--at", before[:12]) as (_, url):
        answer = search(url, paint(40))
        assert answer["commits"]["index"] == before
        assert "trip/later.png" not in [path for _, _, paths in nearest(answer) for path in paths]
    world.settle(world.remove("trip/later.png"))


def test_it_is_deployed_follows_and_is_deleted(world: World, paint: Paint, own_port: OwnPort) -> None:
    port = own_port(NODE_PORTS)
    said = world.lookalike("serve", "--deploy", "--port", str(port))
    assert said.splitlines()[-1] == f"lookalike serve: http://127.0.0.1:{port}"
    assert "pipeline serve: created" in said
    found = service_discovery.deployed(world.connection)
    assert found is not None
    assert found.token_file is not None
    assert found.token_file.stat().st_mode & 0o777 == 0o600
    assert asked(found.url, "GET", "/status")[0] == 401
    assert asked(found.url, "GET", "/ready")[0] == 200
    assert nearest(search(found.url, paint(3, 1), found.headers())) == in_batch(world, "mine.png")
    assert "pipeline serve: unchanged" in world.lookalike("serve", "--deploy")
    assert f"http://127.0.0.1:{port}" in world.lookalike("serve", "--deploy")

    added = world.add({"trip/near.png": paint(3, 1)})
    until(lambda: ((service_discovery.status(found) or {}).get("commits") or {}).get("index") == added)
    assert nearest(search(found.url, paint(3, 1), found.headers()))[0][2] == ["trip/near.png"]

    self_signed(world.scratch)
    said = world.lookalike("serve", "--deploy", "--tls-cert", "tls.crt", "--tls-key", "tls.key")
    assert said.splitlines()[-1] == f"lookalike serve: https://127.0.0.1:{port}"
    protected = service_discovery.deployed(world.connection)
    assert protected is not None
    assert protected.trust() is not None
    assert (service_discovery.status(protected) or {})["pictures"] == 13

    said = world.lookalike("serve", "--off")
    assert said.splitlines()[-2:] == ["pipeline serve: deleted", "secret lookalike-serve: deleted"]
    assert service_roles.SEARCH.pipeline not in ProjectJobs(world.connection).pipelines()
    assert not service_credentials.exists(world.connection)
    assert not service_discovery.token_file(world.connection).exists()
    world.settle(world.remove("trip/near.png"))
