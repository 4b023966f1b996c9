"""Asking registries for images: a real HTTP server with the registries' protocol, with and without tokens."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from pipelines.cluster.registries import ImageAvailability, ask
from pipelines.specifications.image_reference import ImageReference
from tests.http_servers import serving

_THERE = ("team/open/manifests/1", "team/token/manifests/1")


class _Registry(BaseHTTPRequestHandler):
    """Has team/open:1 for everybody, team/token:1 for holders of a token, and team/closed:1 for nobody."""

    def do_HEAD(self) -> None:
        name = self.path.removeprefix("/v2/")
        allowed = self.headers["Authorization"] == "Bearer pull-token"
        if "manifest" in self.headers["Accept"] and name in _THERE and (allowed or name == _THERE[0]):
            self._say(200)
        elif name.startswith(("team/token", "team/closed")):
            scope = "pull-token" if "token" in name else "none"
            realm = f"http://{self.headers['Host']}/token"
            self._say(401, f'Bearer realm="{realm}",service="s",scope="{scope}"')
        elif name.startswith("team/password"):
            self._say(401, "Basic realm=x")
        elif name.startswith("team/odd"):
            self._say(401, 'Bearer realm="file:///etc/passwd"')
        else:
            self._say(500 if name.startswith("team/broken") else 404)

    def do_GET(self) -> None:
        (scope,) = parse_qs(urlsplit(self.path).query)["scope"]
        if scope == "none":
            self._say(403)
            return
        self._say(200, body=json.dumps({"token": scope}).encode())

    def _say(self, status: int, challenge: str = "", body: bytes = b"") -> None:
        self.send_response(status)
        if challenge:
            self.send_header("WWW-Authenticate", challenge)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    """The host and port of a registry."""
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), _Registry)) as url:
        yield url.removeprefix("http://")


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("team/open:1", ImageAvailability.THERE),
        ("team/open:2", ImageAvailability.MISSING),
        ("team/open", ImageAvailability.MISSING),  # which is :latest
        ("gone:1", ImageAvailability.MISSING),
        ("team/token:1", ImageAvailability.THERE),
        ("team/closed:1", ImageAvailability.DENIED),
        ("team/password:1", ImageAvailability.DENIED),
        ("team/odd:1", ImageAvailability.SILENT),
        ("team/broken:1", ImageAvailability.SILENT),
    ],
)
def test_the_answer_of_a_registry(registry: str, name: str, answer: ImageAvailability) -> None:
    image = ImageReference.parse(f"{registry}/{name}")
    assert image is not None
    assert ask(image) is answer


def test_a_missing_registry_is_silent() -> None:
    image = ImageReference.parse("127.0.0.1:9/team/open:1")
    assert image is not None
    assert ask(image) is ImageAvailability.SILENT
