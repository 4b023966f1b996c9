"""The benchmark of the service: its clients, and its arithmetic. The measurement itself takes minutes: make soak."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks import serving
from benchmarks.service import uploads
from benchmarks.service.httpload import Load, Taken, measure
from tests import http_servers


@contextmanager
def server(*statuses: int) -> Iterator[int]:
    """The port of a server that answers with these statuses, and then with 200."""
    left = list(statuses)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"seconds": {"features": 0.0}}).encode()
            self.send_response(left.pop(0) if left else 200)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with http_servers.serving(made):
        yield made.server_address[1]


def test_every_question_is_counted_once() -> None:
    with server(429, 500, 429) as port:
        taken = measure(Load(port, "application/json", [b"{}"], clients=4, most=5))
    assert (len(taken.answered), taken.refused, taken.failed, taken.lost) == (17, 2, 1, 0)
    assert taken.rate == pytest.approx(17 / taken.seconds)


def test_shares_are_of_all_answers_in_milliseconds() -> None:
    taken = Taken(answered=[each / 1000 for each in range(100, 0, -1)], beside=[0.5], seconds=2.0)
    assert taken.share(0.5) == pytest.approx(51)
    assert taken.share(0.95) == pytest.approx(96)
    assert taken.share(1.0) == pytest.approx(100)
    assert taken.share(0.5, beside=True) == pytest.approx(500)


def test_the_pictures_are_distinct() -> None:
    found = list(uploads.pictures())
    assert len(set(found)) == len(found) == 48


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_small_library_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert serving.main(["--pictures", "1000", "--seconds", "2"]) == 0
    said = capsys.readouterr().out
    assert "lost, or failed" in said
    assert "ready, beside a bare import of TensorFlow" in said
