"""Commands of spouts and services, with and without a network of their own."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from localpachd.worker.machine import namespaces
from localpachd.worker.tasks import CancelToken, DatumWork, ServicePorts, Task
from tests.conditions import until
from tests.http_servers import serving
from tests.localpachd.name_service import SERVER, get
from tests.localpachd.worker.bench import Bench
from tests.servers import OwnPort


class Runs:
    """Commands that run in threads, all of which end with the test."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._pool = ThreadPoolExecutor(8)
        self._tokens: list[CancelToken] = []

    def start(self, task: Task, work: DatumWork, ports: ServicePorts | None = None) -> tuple[Future[str], CancelToken]:
        token = CancelToken()
        self._tokens.append(token)
        runner, task = self.bench.runner, self.bench.there(task)
        return self._pool.submit(runner.run_once, task, work, ports, self.bench.lines.append, token), token

    def serve(self, name: str, ports: ServicePorts) -> tuple[Future[str], CancelToken]:
        work = self.bench.datum(self.bench.input("in", "/name", {"/name": name.encode()}))
        task = Task(cmd=("python3", "-c", SERVER, str(ports.internal)), env={"PEER_PORT": str(ports.server)})
        return self.start(task, work, ports)

    def close(self) -> None:
        for token in self._tokens:
            token.cancel()
        self._pool.shutdown()


@pytest.fixture
def runs(bench: Bench) -> Iterator[Runs]:
    made = Runs(bench)
    yield made
    made.close()


@pytest.fixture
def peer() -> Iterator[int]:
    """The port of a server that says hello."""

    class Hello(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello from outside")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    with serving(server):
        yield server.server_port


def test_a_service_is_reached_at_its_external_port_and_reaches_the_server(
    runs: Runs, peer: int, own_port: OwnPort
) -> None:
    ports = ServicePorts(internal=own_port(), external=own_port(), server=peer)
    running, token = runs.serve("one", ports)
    assert get(ports.external) == "one"
    assert get(ports.external, "/peer") == "hello from outside"
    token.cancel()
    assert running.result(30) == ""
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", ports.external), 1)


def test_the_port_can_be_had_again_at_once(runs: Runs, peer: int, own_port: OwnPort) -> None:
    ports = ServicePorts(internal=own_port(), external=own_port(), server=peer)
    for name in ("one", "two"):
        running, token = runs.serve(name, ports)
        assert get(ports.external) == name
        token.cancel()
        assert running.result(30) == ""


def test_two_services_may_share_an_internal_port(runs: Runs, peer: int, own_port: OwnPort) -> None:
    bench = runs.bench
    if bench.confinement is not None and namespaces.with_network(bench.confinement, bench.scratch) is None:
        pytest.skip("services here share the machine's network")
    inside = own_port()
    outside = [own_port(), own_port()]
    for name, port in zip(("one", "two"), outside, strict=True):
        runs.serve(name, ServicePorts(internal=inside, external=port, server=peer))
    assert [get(port) for port in outside] == ["one", "two"]
    assert any("with a network of its own" in line for line in bench.said(user=False))


def test_an_external_port_that_is_taken_is_a_reason(runs: Runs, peer: int, own_port: OwnPort) -> None:
    running, _ = runs.serve("one", ServicePorts(internal=own_port(), external=peer, server=peer))
    assert running.result(30).startswith(f"external_port {peer} is not available")


def test_a_shared_network_with_one_port_needs_no_relay(runs: Runs, peer: int, own_port: OwnPort) -> None:
    port = own_port()
    running, token = runs.serve("one", ServicePorts(internal=port, external=port, server=peer, own_network=False))
    assert get(port) == "one"
    assert any("the machine's network is shared" in line for line in runs.bench.said(user=False))
    token.cancel()
    assert running.result(30) == ""


def test_the_end_of_a_command_is_returned(runs: Runs) -> None:
    running, _ = runs.start(runs.bench.sh("echo working; exit 7"), DatumWork("spout", (), {}))
    assert running.result(30) == "exit status 7: working"
    ended, _ = runs.start(runs.bench.sh("exit 0"), DatumWork("spout", (), {}))
    assert ended.result(30) == "exit status 0"
    missing, _ = runs.start(Task(cmd=("no-such-program",)), DatumWork("spout", (), {}))
    assert "executable file not found" in missing.result(30)


def test_output_is_passed_on_while_a_command_runs_and_it_dies_when_cancelled(runs: Runs) -> None:
    running, token = runs.start(runs.bench.sh("echo here; sleep 50"), DatumWork("spout", (), {}))
    until(lambda: runs.bench.said() == ["here"])
    assert not running.done()
    token.cancel()
    assert running.result(30) == ""


def test_clients_find_the_server_by_their_configuration(runs: Runs) -> None:
    task = runs.bench.sh('cat "$PACH_CONFIG"', pachd="127.0.0.1:4711")
    running, _ = runs.start(task, DatumWork("spout", (), {}))
    running.result(30)
    assert "grpc://127.0.0.1:4711" in runs.bench.said()[0]
