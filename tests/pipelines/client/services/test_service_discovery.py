"""Services found by other commands of the same user: registered while they run, for one server and project, and asked
whether they live."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pipelines.client.server.connection import Connection
from pipelines.client.services import service_discovery
from pipelines.client.services.service_discovery import ServiceEndpoint, register, running, status
from tests.http_servers import serving

pytestmark = pytest.mark.late_alone

TOKEN = "a-token-of-the-test"


class _Answers(BaseHTTPRequestHandler):
    """Answers every request as the server's `said`, if it has the token."""

    heard: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.heard.append(self.headers.get("Authorization", ""))
        said, token = self.server.said  # type: ignore[attr-defined]
        code = 200 if not token or self.headers.get("Authorization") == f"Bearer {token}" else 401
        self.send_response(code)
        self.end_headers()
        self.wfile.write(said.encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def answering(said: object, token: str = "") -> Iterator[str]:
    """A program that answers everything with this text or JSON, while the context lasts; gives its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    server.said = said if isinstance(said, str) else json.dumps(said), token  # type: ignore[attr-defined]
    with serving(server) as url:
        yield url


def ready(connection: Connection) -> dict[str, Any]:
    return {"state": "ready", "pictures": 7, "commits": {"project": connection.project, "index": "1" * 32}}


def entries() -> list[Path]:
    return list((service_discovery.state_directory() / "services").glob("*"))


def test_a_service_is_found_while_it_is_registered(connection: Connection) -> None:
    with answering(ready(connection)) as url:
        assert running(connection) is None
        with register(connection, url) as registered:
            assert registered
            found = running(connection)
            assert found == ServiceEndpoint(url, f"the service at {url}")
            assert found.status["pictures"] == 7
            assert found.trust() is None
        assert running(connection) is None
    with answering({"state": "loading", "commits": None}) as url, register(connection, url):
        found = running(connection)
        assert found is not None
        assert found.status["state"] == "loading"
    assert entries() == []


def test_only_its_user_reads_the_entry(connection: Connection) -> None:
    with register(connection, "http://127.0.0.1:1"):
        (entry,) = entries()
        assert stat.S_IMODE(entry.stat().st_mode) == 0o600
        assert stat.S_IMODE(entry.parent.stat().st_mode) == 0o700


def test_its_token_goes_with_the_question(connection: Connection, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text(TOKEN + "\n")
    with answering(ready(connection), TOKEN) as url:
        with register(connection, url):
            assert running(connection) is None
        with register(connection, url, token_file=secret):
            found = running(connection)
            assert found is not None
            assert found.headers() == {"Authorization": f"Bearer {TOKEN}"}


def test_a_service_of_another_project_server_or_commit_is_not_taken(connection: Connection) -> None:
    with answering(ready(connection)) as url:
        with register(Connection(connection.client, connection.address, "another"), url):
            assert running(connection) is None
        with register(connection, url, at="1" * 32):
            assert running(connection) is None
        with register(connection, url):
            (entry,) = entries()
            entry.write_text(json.dumps({**json.loads(entry.read_text()), "cluster": "another"}))
            assert running(connection) is None


def test_what_does_not_answer_as_one_is_not_taken(connection: Connection) -> None:
    others: tuple[Any, ...] = ("<html>", {"state": "ready"}, [], {"state": "ready", "commits": {"project": "x"}})
    for said in others:
        with answering(said) as url, register(connection, url):
            assert running(connection) is None
    with register(connection, url):  # where nobody is any more
        assert running(connection) is None


def test_the_newest_of_several_is_taken(connection: Connection) -> None:
    said = ready(connection)
    with answering(said) as first, answering(said) as second, register(connection, first), register(connection, second):
        os.utime(next(path for path in entries() if json.loads(path.read_text())["url"] == first), (1, 1))
        found = running(connection)
        assert found is not None
        assert found.url == second


def test_the_entry_of_a_killed_process_is_forgotten_also_when_its_id_is_used_again(connection: Connection) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with answering(ready(connection)) as url, register(connection, url):
        (entry,) = entries()
        entry.write_text(json.dumps({**json.loads(entry.read_text()), "pid": ended.pid}))
        assert running(connection) is None
        assert entries() == []
    with answering(ready(connection)) as url, register(connection, url):
        (entry,) = entries()
        entry.write_text(json.dumps({**json.loads(entry.read_text()), "began": "1"}))
        assert running(connection) is None
        assert entries() == []


def test_what_is_not_an_entry_is_passed_over(connection: Connection) -> None:
    with answering(ready(connection)) as url, register(connection, url):
        (entry,) = entries()
        (entry.parent / "1-1.json").write_text("{")
        (entry.parent / "2-2.json").write_text('{"url": 1}')
        assert running(connection) is not None


def test_a_service_serves_where_nothing_can_be_kept(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with register(connection, "http://127.0.0.1:1") as registered:
        assert not registered


def test_a_token_is_not_sent_where_others_read_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    _Answers.heard.clear()
    with answering({"state": "ready", "commits": {}}) as url:
        elsewhere = url.replace("127.0.0.1", "localhost.localdomain")
        assert status(ServiceEndpoint(elsewhere, "", tmp_path / "token")) is None
        assert _Answers.heard == []
        assert status(ServiceEndpoint(url, "", tmp_path / "token")) is not None
        assert _Answers.heard == [f"Bearer {TOKEN}"]
