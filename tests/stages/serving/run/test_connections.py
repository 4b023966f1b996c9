"""The server below the application: connections that bring no request, and the lines of its log."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from stages.serving.run import connections
from stages.serving.run.connections import HeaderTimeoutProtocol, open_socket
from stages.serving.run.log_lines import errors_as_lines


async def answering(scope: Any, receive: Any, send: Any) -> None:
    """Answers each request with "there", and one for /fault with an error."""
    if scope["path"] == "/fault":
        raise LookupError("nothing\nthere")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"there"})


@contextmanager
def served() -> Iterator[int]:
    """A server with connections of ours; gives its port."""
    settings = uvicorn.Config(
        answering, http=HeaderTimeoutProtocol, ws="none", lifespan="off", log_config=None, access_log=False
    )
    server = uvicorn.Server(settings)
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
    monkeypatch.setattr(connections, "_WITHIN", 0.1)
    with served() as port, socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(sent)
        assert client.recv(1) == b""


def test_headers_of_a_later_request_have_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_WITHIN", 0.1)
    with served() as port, socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        said = b""
        while not said.endswith(b"there"):
            said += client.recv(4096)
        client.sendall(b"GET / HTTP/1.1\r\n")
        assert client.recv(1) == b""


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
