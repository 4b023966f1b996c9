"""The client for TypeScript: generated from today's OpenAPI document, compiled, and run in Node against a service."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from stages.serving.follow.configuration import ServiceConfiguration
from stages.serving.follow.snapshots import Snapshot
from tests.stages.serving import services
from tests.stages.serving.services import Service

CLIENT = Path(__file__).parents[3] / "clients" / "typescript"

TOKEN = "a-token-of-this-test-alone"

_OLDEST = 18
"""Of Node: its own test runner and fetch."""

_UNREACHABLE = re.compile("ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|E403|ENOTCACHED")
"""What npm says where its registry cannot be asked."""

pytestmark = [pytest.mark.only_in_all, pytest.mark.timeout(600)]


def run(directory: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=directory, env={**os.environ, **environment}, capture_output=True, text=True, timeout=500
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the client with the packages of its lock file."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node and npm are not installed")
    version = run(CLIENT, "node", "--version").stdout.strip()
    if int(version.removeprefix("v").partition(".")[0]) < _OLDEST:
        pytest.skip(f"Node {version} is older than {_OLDEST}")
    copy = tmp_path_factory.mktemp("client") / "typescript"
    shutil.copytree(CLIENT, copy, ignore=shutil.ignore_patterns("node_modules", "build", "schema.ts"))
    (copy / "test").mkdir(exist_ok=True)
    shutil.copyfile(Path(__file__).with_name("typescript_client.test.ts"), copy / "test" / "client.test.ts")
    done = run(copy, "npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", "--fetch-retries=1")
    if done.returncode and (reason := _UNREACHABLE.search(done.stderr)):
        pytest.skip(f"the registry of npm cannot be asked ({reason[0]})")
    assert done.returncode == 0, done.stderr
    return copy


@pytest.fixture(scope="module")
def guarded(ready: Snapshot) -> Iterator[Service]:
    """A service that asks for a token."""
    configuration = ServiceConfiguration(services.NOWHERE, port=0, token=TOKEN)
    with services.running(ready, configuration) as running:
        yield running


def test_it_is_generated_compiled_and_answered(
    installed: Path, guarded: Service, ready: Snapshot, stock: dict[str, bytes], tmp_path: Path
) -> None:
    url, path = f"http://127.0.0.1:{guarded.port}", "trip/south/06.png"
    (tmp_path / "picture.png").write_bytes(stock[path])
    row = next(row for row in range(len(ready.library)) if ready.library.sources(row)[0].path == path)
    (vector,) = ready.library.vectors(np.array([row]))
    document = tmp_path / "openapi.json"
    document.write_bytes(guarded.ask("/openapi.json").body)
    for step in (("generate", "--", str(document)), ("build",)):
        done = run(installed, "npm", "run", *step)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "Do not make direct changes" in (installed / "src" / "schema.ts").read_text()
    done = run(
        installed,
        *("node", "--test", "build/test/client.test.js"),
        LOOKALIKE_URL=url,
        LOOKALIKE_TOKEN=TOKEN,
        LOOKALIKE_PICTURE=str(tmp_path / "picture.png"),
        LOOKALIKE_VECTOR=json.dumps([float(each) for each in vector]),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^# pass 7$", done.stdout, re.MULTILINE) and re.search(r"^# fail 0$", done.stdout, re.MULTILINE)


def test_packages_are_pinned_and_nothing_generated_is_kept() -> None:
    package = json.loads((CLIENT / "package.json").read_text())
    pinned = {**package["dependencies"], **package["devDependencies"]}
    locked = json.loads((CLIENT / "package-lock.json").read_text())["packages"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in pinned.values())
    assert {name: locked[f"node_modules/{name}"]["version"] for name in pinned} == pinned
    assert all("integrity" in each for name, each in locked.items() if name)
    kept = run(CLIENT, "git", "ls-files", ".")
    if kept.returncode == 0:
        assert not re.search(r"^(node_modules|build)/|schema\.ts$", kept.stdout, re.MULTILINE)
