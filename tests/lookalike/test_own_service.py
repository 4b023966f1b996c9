"""The service that a library starts for itself: a real process, which stands in for `lookalike serve`."""

import urllib.request
from pathlib import Path

import pytest

from lookalike import own_service
from lookalike.own_service import OwnService
from pipelines.errors import LookalikeError

# Says much more than a pipe holds with every answer.
_CHATTY = """
import http.server, json, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("x" * 100_000, flush=True)
        said = json.dumps({"state": "ready", "commits": None, "at": os.getcwd(), "arguments": sys.argv[1:]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print("loading", flush=True)
print(f"lookalike serve: http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
"""


def test_a_service_that_says_much_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_service, "_PROGRAM", _CHATTY)
    said: list[str] = []
    own = OwnService("grpc://127.0.0.1:1", tmp_path, "master^", said.append)
    assert said[0] == "loading"
    assert own.service.status["at"] == str(tmp_path)
    assert own.service.status["arguments"][-4:] == ["--address", "grpc://127.0.0.1:1", "--at", "master^"]
    for _ in range(5):
        with urllib.request.urlopen(own.service.url, timeout=60) as answer:
            assert answer.status == 200
    assert own._process.poll() is None
    own.close()
    assert own._process.poll() is not None
    own.close()


def test_a_service_that_does_not_start_is_said_with_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_service, "_PROGRAM", "print('lookalike: Pachyderm is away'); raise SystemExit(1)")
    with pytest.raises(LookalikeError, match=r"did not start: lookalike: Pachyderm is away$"):
        OwnService("", tmp_path)
    monkeypatch.setattr(own_service, "_PROGRAM", "")
    with pytest.raises(LookalikeError, match="did not start: it ended without a word"):
        OwnService("", tmp_path)
