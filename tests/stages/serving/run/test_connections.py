"""The server below the application: connections that bring no request, and the lines of its log."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from stages.serving.run import connections
from stages.serving.run.connections import ServiceConnection, open_socket
from stages.serving.run.log_lines import errors_as_lines
from tests.certificates import self_signed
from tests.conditions import until

WAITING: list[Any] = []
"""The requests for /wait that are under way."""


async def answering(scope: Any, receive: Any, send: Any) -> None:
    """Answers each request with "there", one for /fault with an error, one for /wait never; with 429 if there are too
    many and it is not a probe."""
    if scope["path"] == "/fault":
        raise LookupError("nothing\nthere")
    crowded = scope["state"]["crowded"] and scope["path"] != "/health"
    if scope["path"] == "/wait" and not crowded:
        WAITING.append(scope)
        while (await receive())["type"] != "http.disconnect":
            pass
        WAITING.remove(scope)
        return
    await send(
        {"type": "http.response.start", "status": 429 if crowded else 200, "headers": [(b"content-length", b"5")]}
    )
    await send({"type": "http.response.body", "body": b"there"})


@contextmanager
def served(kind: type[ServiceConnection] = ServiceConnection, **settings: Any) -> Iterator[int]:
    """A server with connections of ours; gives its port."""
    plain = {"ws": "none", "lifespan": "off", "log_config": None, "access_log": False}
    server = uvicorn.Server(uvicorn.Config(answering, http=kind, **{**plain, **settings}))
    with open_socket("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "], ids=["silent", "slow headers"])
def test_a_connection_without_a_request_is_closed(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(connections, "WITHIN", 0.1)
    with served() as port, socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(sent)
        assert client.recv(1) == b""


def test_headers_of_a_later_request_have_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "WITHIN", 0.1)
    with served() as port, socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        said = b""
        while not said.endswith(b"there"):
            said += client.recv(4096)
        client.sendall(b"GET / HTTP/1.1\r\n")
        assert client.recv(1) == b""


class FewConnections(ServiceConnection):
    """Connections of which there may be few."""

    most, share, spare = 8, 4, 2


@contextmanager
def connected(port: int, count: int, own: str = "127.0.0.1", sent: bytes = b"") -> Iterator[list[socket.socket]]:
    """So many connections from an address, each with these bytes."""
    with ExitStack() as held:
        made = []
        for _ in range(count):
            made.append(held.enter_context(socket.create_connection(("127.0.0.1", port), 60, (own, 0))))
            with suppress(ConnectionError):  # it may be the one that had to give way
                made[-1].sendall(sent)
        yield made


def status(port: int, path: str, own: str = "127.0.0.1") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=(own, 0))
    with closing(connection):
        connection.request("GET", path)
        return connection.getresponse().status


ENDLESS = b"POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"


def test_silent_connections_give_way_to_new_ones() -> None:
    with served(FewConnections) as port, connected(port, 40, sent=b"GET / HTTP/1.1\r\n") as silent:
        assert status(port, "/") == 200
        assert status(port, "/") == 200  # the first one may have come with the silent ones
        with suppress(ConnectionResetError):
            assert silent[0].recv(1) == b""


def test_connections_are_full_of_requests_alone_and_probes_are_answered_then() -> None:
    with served(FewConnections) as port, connected(port, 8, sent=ENDLESS) as endless:
        until(lambda: len(WAITING) == 8)
        with connected(port, 40, sent=b"GET"), connected(port, 20, sent=ENDLESS) as refused:
            assert [status(port, path) for path in ("/", "/health", "/")] == [429, 200, 429]
            assert refused[-1].recv(12) == b"HTTP/1.1 429"
        endless[0].close()
        until(lambda: status(port, "/") == 200)


def test_a_client_has_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "client_key", str)
    with served(FewConnections) as port, connected(port, 4, "127.0.0.2", ENDLESS):
        until(lambda: len(WAITING) == 4)
        assert status(port, "/", "127.0.0.2") == 429
        with connected(port, 1, "127.0.0.2") as (slow,):
            assert status(port, "/", "127.0.0.3") == 200  # by now the slow one is accepted, and still silent
            slow.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert slow.recv(12) == b"HTTP/1.1 429"
        assert status(port, "/health", "127.0.0.2") == 200
        with connected(port, 1, "127.0.0.3") as (patient,), connected(port, 20, "127.0.0.2"):
            patient.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert patient.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:9::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("127.0.0.9", ""),
        ("::1", ""),
        ("", ""),
    ],
)
def test_clients_are_told_apart_by_their_network(host: str, client: str) -> None:
    assert connections.client_key(host) == client


def test_a_handshake_of_tls_has_little_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(connections, "WITHIN", 0.1)
    certificate, key = self_signed(tmp_path)
    tls: dict[str, Any] = {
        "ssl_certfile": certificate,
        "ssl_keyfile": key,
        "loop": "stages.serving.run.connections:ServiceLoop",
    }
    with served(**tls) as port, connected(port, 1) as (silent,):
        assert silent.recv(1) == b""


def test_a_fault_is_one_line_of_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    with errors_as_lines(lines.append), served() as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/fault")
        assert connection.getresponse().status == 500
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(b"nonsense\r\n\r\n")
            assert client.recv(4096).startswith(b"HTTP/1.1 400 ")
    (line,) = lines
    assert line.startswith("a fault of lookalike's own, please report it (LookupError: nothing there in ")
    assert "test_connections.py, line " in line
    assert capfd.readouterr() == ("", "")
