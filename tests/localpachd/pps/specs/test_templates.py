"""Templates, evaluated in processes of their own: imports and time limit."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from localpachd.errors import PachError
from localpachd.pps.specs import templates
from localpachd.storage.url_reach import UrlReach, network
from tests.conditions import until
from tests.http_servers import serving

ENDLESS = """
local sum(f) = std.foldl(function(all, x) all + f(x), std.range(1, 5000), 0);
sum(function(x) sum(function(y) sum(function(z) 1)))
"""
"""Takes a day, and little memory."""
NEAR = UrlReach(networks=(network("127.0.0.0/8"),))


class _Library(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = self.path == "/lib.libsonnet"
        body = b'{ greet(name):: "hello " + name }' if found else b""
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def web() -> Iterator[str]:
    """A web server with one Jsonnet library."""
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), _Library)) as url:
        yield url


def refusal(template: str, **arguments: str) -> str:
    with pytest.raises(PachError) as refused:
        templates.render(template, arguments, NEAR)
    return str(refused.value)


def test_libraries_come_from_the_web(web: str) -> None:
    template = f'function(name) {{ said: (import "{web}/lib.libsonnet").greet(name) }}'
    assert json.loads(templates.render(template, {"name": "you"}, NEAR)) == {"said": "hello you"}


def test_libraries_that_cannot_be_fetched(web: str) -> None:
    assert f"http code 404 fetching {web}/other" in refusal(f'import "{web}/other"')
    assert "cannot fetch http://127.0.0.1:1/x" in refusal('import "http://127.0.0.1:1/x"')


def test_libraries_do_not_come_from_addresses_that_are_not_public(web: str) -> None:
    with pytest.raises(PachError, match=f"cannot fetch {web}/lib.libsonnet: .* is not on the public internet"):
        templates.render(f'import "{web}/lib.libsonnet"', {}, UrlReach())


@pytest.mark.parametrize("path", ["/etc/hostname", "file:///etc/hostname", "lib.libsonnet", "ftp://127.0.0.1/x"])
def test_files_are_not_read(path: str) -> None:
    assert f"import not available {path}" in refusal(f'importstr "{path}"')


def test_an_endless_template_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "TIME_LIMIT", 1.0)
    text = refusal(ENDLESS)
    assert text == "template err: it takes more than 1 seconds"


def test_any_text_passes_through() -> None:
    odd = "ä \u2028 \U0001f600 \" ' \\ \n"
    assert json.loads(templates.render("function(a) [a]", {"a": odd}, NEAR)) == [odd]


def test_an_evaluation_ends_with_a_server_that_is_killed() -> None:
    code = f"from localpachd.pps.specs import templates; templates.render({ENDLESS!r}, {{}}, templates.UrlReach())"
    with subprocess.Popen([sys.executable, "-c", code]) as server:
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
        evaluator = until(lambda: next(filter(_computes, children.read_text().split()), ""))
        server.kill()
    until(lambda: not _runs(evaluator))


def _computes(process: str) -> bool:
    """Whether a process has taken more time than it needs to start."""
    user = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11])
    return user > os.sysconf("SC_CLK_TCK")


def _runs(process: str) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
