"""What the tests of the control plane share: a project of their own on a server, and nobody's configuration."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import python_pachyderm

from pipelines import specs
from pipelines.connection import Connection
from pipelines.deploy import deploy
from pipelines.jobs import Job, Jobs


@pytest.fixture(autouse=True)
def own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration of pachctl's that is not there yet: tests never touch the user's."""
    path = tmp_path / "pachctl" / "config.json"
    monkeypatch.setenv("PACH_CONFIG", str(path))
    for name in ("PACHD_ADDRESS", "PACH_CONTEXT", "PACH_CA_CERTS", "LOOKALIKE_ROOT"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.fixture
def connection(client: python_pachyderm.Client, pachd: Any, unique: Callable[[str], str]) -> Iterator[Connection]:
    """A connection that works in a project of its own, which goes with the test."""
    project = unique("t")
    client.create_project(project)
    yield Connection(client, pachd.address, project)
    for info in client.list_pipeline(details=True):
        if info.pipeline.project.name == project:
            client.delete_pipeline(info.pipeline.name, force=True, project_name=project)
    for info in list(client.list_repo()):
        if info.repo.project.name == project:
            client.delete_repo(info.repo.name, force=True, project_name=project)
    client.delete_project(project)


@pytest.fixture
def as_user(connection: Connection, own_configuration: Path) -> Connection:
    """The same connection, and it is the one that the `lookalike` command finds."""
    context = {"pachd_address": connection.address, "project": connection.project}
    own_configuration.parent.mkdir()
    own_configuration.write_text(json.dumps({"v2": {"active_context": "test", "contexts": {"test": context}}}))
    return connection


Settle = Callable[..., list[Job]]


@pytest.fixture
def settle(connection: Connection) -> Settle:
    """Waits for the jobs of commit sets and returns them, upstream first."""
    return lambda *commits: Jobs(connection).watch(commits, lambda jobs, troubles: None)


RENDER = r"""
out="${LOCALPACHD_PFS:-/pfs}/out/$(basename "$queries")"
mkdir -p "$out"
find "$queries" -type f -exec cat {} + > "$out/neighbors.jsonl"
echo grid > "$out/grid.png"
echo page > "$out/index.html"
"""
"""Stands in for the stages from the queries to their sheets."""


@pytest.fixture
def sheets(connection: Connection, tmp_path: Path) -> Connection:
    """The connection, with a `render` whose sheets are what was put into the queries."""
    document = {
        "pipeline": {"name": "render"},
        "input": {"pfs": {"name": "queries", "repo": "queries", "branch": "master", "glob": "/*"}},
        "transform": {"image": "shell:1", "cmd": ["sh", "-e"], "stdin": RENDER.splitlines()},
    }
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "render.json").write_text(json.dumps(document))
    deploy(connection, specs.load(tmp_path / "specs"))
    return connection


@pytest.fixture
def preprocessing(connection: Connection) -> Connection:
    """The connection, with the real pipelines that read pictures, which need no TensorFlow."""
    deploy(connection, [spec for spec in specs.load() if spec.name.startswith("preprocess")])
    return connection
