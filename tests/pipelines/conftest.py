"""Fixtures of the command's tests: a project of their own on a server, and configurations of their own."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import grpc
import pytest
import python_pachyderm

from pipelines.client.deployment.deployment import deploy, make_repo
from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.cluster import kube_client
from pipelines.specifications import pipeline_specs
from stages.record import masks
from tests import forking
from tests.http_servers import serving
from tests.pipelines.grpc_proxy import passed_on
from tests.pipelines.stand_ins import RENDER, deploy_specs, shell_spec
from tests.servers import LATE, Pachd, Unique


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of the command that needs a server runs on a late one, and in `make test-all` also on one that does all at
    once. Those marked `late_alone` do so in `make soak`, unless False takes that back from one of a module. Those
    marked `versions` also run on one that answers as 2.12."""
    if "pachd" in metafunc.fixturenames and not metafunc.config.getoption(LATE) and "PACHD_ADDRESS" not in os.environ:
        at_once, late = pytest.param("localpachd", id="at-once"), pytest.param("late_localpachd", id="late")
        marker = metafunc.definition.get_closest_marker("late_alone")
        both = "--all" if marker is None or marker.args == (False,) else "--soak"
        alone = not (metafunc.config.getoption(both) or metafunc.config.getoption("--soak"))
        newer = (
            [pytest.param("newer_localpachd", id="2.12")] if metafunc.definition.get_closest_marker("versions") else []
        )
        kinds = [late] if alone else [at_once, late]
        metafunc.parametrize("pachd", [*kinds, *newer], indirect=True, scope="session")


@pytest.fixture(autouse=True)
def own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a new configuration of pachctl: tests never touch the user's, nor what commands keep for the user."""
    path = tmp_path / "pachctl" / "config.json"
    monkeypatch.setenv("PACH_CONFIG", str(path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("PACHD_ADDRESS", "PACH_CONTEXT", "PACH_CA_CERTS", "LOOKALIKE_ROOT"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.fixture
def connection(client: python_pachyderm.Client, pachd: Pachd, unique: Unique) -> Iterator[Connection]:
    """A connection to a project of its own, deleted after the test."""
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
    """The same connection, configured for the `lookalike` command."""
    context = {"pachd_address": connection.address, "project": connection.project}
    own_configuration.parent.mkdir()
    own_configuration.write_text(json.dumps({"v2": {"active_context": "test", "contexts": {"test": context}}}))
    return connection


def _run_forked(arguments: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
    """What subprocess.run gives for a question to Kubernetes, from a process that has imported its client already."""
    assert arguments[:3] == [sys.executable, "-m", "pipelines.cluster.kube_api"]
    return forking.run(arguments[3:], "tests.pipelines.forked_kube_api")


@pytest.fixture(autouse=True)
def forked_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions to Kubernetes are forked, since its client takes a second to import; those of a command that is a
    process of its own are not."""
    monkeypatch.setattr(kube_client, "subprocess", SimpleNamespace(run=_run_forked))


@pytest.fixture
def stranger() -> Iterator[str]:
    """The address of a server without any calls."""
    with ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield f"grpc://127.0.0.1:{port}"
        server.stop(None).wait()


@pytest.fixture
def like_a_cluster(connection: Connection) -> Iterator[Connection]:
    """The connection, to a server that does not know localpachd's own calls, as a real Pachyderm does not."""
    with passed_on(connection, unknown="/localpachd.") as through:
        yield through


Answers = Mapping[str, Sequence[Mapping[str, Any]]]
"""The objects that an API server lists, by path."""


class _ApiServer(ThreadingHTTPServer):
    """Answers like Kubernetes' API server, two objects a page."""

    def __init__(self, answers: Answers) -> None:
        super().__init__(("127.0.0.1", 0), _ApiHandler)
        self.answers = answers


class _ApiHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, _ApiServer)
        asked = urlsplit(self.path)
        found = self.server.answers.get(asked.path)
        if found is None:
            self._send(
                403, {"kind": "Status", "message": f"{asked.path} is forbidden: User cannot list\nit", "code": 403}
            )
            return
        start = int(parse_qs(asked.query).get("continue", ["0"])[0])
        rest = str(start + 2) if start + 2 < len(found) else ""
        self._send(200, {"kind": "List", "metadata": {"continue": rest}, "items": found[start : start + 2]})

    def _send(self, code: int, reply: dict[str, Any]) -> None:
        body = json.dumps(reply).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


Kubeconfig = Callable[[str, str], None]


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubeconfig:
    """Makes kubectl's configuration name a server and a namespace."""

    def write(server: str, namespace: str) -> None:
        context = {"cluster": "c", "user": "u", "namespace": namespace}
        path = tmp_path / "kubeconfig"
        written = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": "secret"}}],
            "contexts": [{"name": "test", "context": context}],
        }
        path.write_text(json.dumps(written))
        monkeypatch.setenv("KUBECONFIG", str(path))

    return write


@pytest.fixture
def serve_api(kubeconfig: Kubeconfig) -> Iterator[Callable[[Answers], str]]:
    """Starts an API server with these answers, by path, and makes it the one that kubectl would talk to, with the
    namespace pach; returns its address."""
    with contextlib.ExitStack() as running:

        def serve(answers: Answers) -> str:
            address = running.enter_context(serving(_ApiServer(answers)))
            kubeconfig(address, "pach")
            return address

        yield serve


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


WaitForJobs = Callable[..., list[Job]]


@pytest.fixture
def wait_for_jobs(connection: Connection) -> WaitForJobs:
    """Waits for the jobs of commit sets and returns them, upstream first."""
    return lambda *commits: ProjectJobs(connection).watch(commits, lambda jobs, troubles: None)


@pytest.fixture
def sheets(connection: Connection) -> Connection:
    """The connection, with a `render` that copies the queries to their sheets."""
    deploy_specs(connection, shell_spec("render", "queries", RENDER))
    return connection


@pytest.fixture
def preprocessing(connection: Connection) -> Connection:
    """The connection, with the real pipelines that read pictures, which need no TensorFlow."""
    deploy(connection, [spec for spec in pipeline_specs.load() if spec.name.startswith("preprocess")])
    make_repo(connection, masks.REPO)
    return connection
