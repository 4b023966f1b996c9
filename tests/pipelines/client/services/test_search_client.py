"""Questions to a service over HTTP: what is sent, and what happens if the service is busy, gone, or another program."""

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pipelines.client.services.search_client import QueryPicture, SearchClient, SearchError
from pipelines.client.services.service_discovery import ServiceEndpoint
from tests.http_servers import serving

REFUSED = {"error": {"code": "bad-request", "message": "mine.png is not a picture"}}


@dataclass
class Heard:
    """The requests that came, on how many connections; and the responses that are still to be given."""

    responses: list[tuple[int, dict[str, str], bytes]]
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    connections: set[int] = field(default_factory=set)


@contextmanager
def server(*responses: tuple[int, Any], headers: dict[str, str] | None = None) -> Iterator[tuple[str, Heard]]:
    """A server that gives these responses, one after the other."""
    bodies = [each if isinstance(each, bytes) else json.dumps(each).encode() for _, each in responses]
    heard = Heard([(status, headers or {}, body) for (status, _), body in zip(responses, bodies, strict=True)])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            heard.connections.add(id(self.connection))
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            heard.requests.append((self.path, dict(self.headers), body))
            status, more, content = heard.responses.pop(0)
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(content))} | more).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
            self.close_connection = "Connection" in more

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Nothing."""

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with serving(made) as url:
        yield url, heard


def at(url: str, token: Path | None = None) -> SearchClient:
    return SearchClient(ServiceEndpoint(url, f"the service at {url}", token))


def parts(request: tuple[str, dict[str, str], bytes]) -> Sequence[bytes]:
    """The parts of a form, with their headers."""
    boundary = request[1]["Content-Type"].partition("boundary=")[2].encode()
    return [each.removeprefix(b"\r\n").removesuffix(b"\r\n") for each in request[2].split(b"--" + boundary)][1:-1]


def test_the_answer_of_an_older_service_is_read() -> None:
    """Which spelled `neighbors` like the pipeline."""
    with (
        server((200, {"k": 1, "neighbours": []}), (200, {"answers": [{"neighbours": []}]})) as (url, _),
        at(url) as old,
    ):
        asked = [QueryPicture(id="a" * 64)]
        assert old.search(asked) == {"k": 1, "neighbors": []}
        assert old.search_each(asked) == [{"neighbors": []}]


def test_a_question_without_files_is_json(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    with server((200, {"neighbors": []}), (200, b"jpeg")) as (url, heard), at(url, token) as searches:
        asked = [QueryPicture(id="a" * 64), QueryPicture(url="https://example.org/x.png", box=(0, 0, 0.5, 1))]
        assert searches.search(asked, k=3, metric=None) == {"neighbors": []}
        assert searches.thumbnail("a" * 64) == b"jpeg"
    path, headers, body = heard.requests[0]
    assert (path, headers["Content-Type"], headers["Authorization"]) == (
        "/search", "application/json", "Bearer 0123456789abcdef"
    )  # fmt: skip
    assert json.loads(body) == {
        "pictures": [{"id": "a" * 64}, {"url": "https://example.org/x.png", "box": [0, 0, 0.5, 1]}],
        "k": 3,
    }
    assert len(heard.connections) == 1


def test_files_come_in_a_form_under_names_that_cannot_break_it() -> None:
    with server((200, {})) as (url, heard), at(url) as searches:
        searches.search([QueryPicture(b"one", 'a"\r\nb.png'), QueryPicture(id="c" * 64), QueryPicture(b"two")], k=2)
    question, one, two = parts(heard.requests[0])
    assert json.loads(question.partition(b"\r\n\r\n")[2]) == {
        "pictures": [{"upload": 0}, {"id": "c" * 64}, {"upload": 1}],
        "k": 2,
    }
    assert one == b'Content-Disposition: form-data; name="picture"; filename="a%22%0D%0Ab.png"\r\n\r\none'
    assert two == b'Content-Disposition: form-data; name="picture"; filename="picture"\r\n\r\ntwo'


def test_many_pictures_are_asked_sixteen_at_a_time() -> None:
    answers = [{"answers": [{"n": n} for n in range(16)]}, {"answers": [{"n": 16}]}]
    with server(*((200, each) for each in answers)) as (url, heard), at(url) as searches:
        found = searches.search_each([QueryPicture(bytes([n])) for n in range(17)], k=1)
    assert [each["n"] for each in found] == list(range(17))
    assert [len(parts(each)) for each in heard.requests] == [17, 2]


def test_one_of_many_that_is_refused_fails_all_with_its_reason() -> None:
    with server((200, {"answers": [{}, REFUSED]})) as (url, _), at(url) as searches:
        with pytest.raises(SearchError, match=r"mine\.png is not a picture") as failed:
            searches.search_each([QueryPicture(b"1"), QueryPicture(b"2")])
        assert failed.value.answered


def test_a_busy_service_is_asked_again() -> None:
    busy = {"error": {"code": "busy", "message": "too many questions"}}
    with server((429, busy), (503, busy), (200, {"k": 1}), headers={"Retry-After": "0"}) as (url, heard):
        with at(url) as searches:
            assert searches.search([QueryPicture(id="a" * 64)]) == {"k": 1}
        assert len(heard.requests) == 3


def test_a_service_that_stays_busy_is_given_up() -> None:
    busy = {"error": {"code": "busy", "message": "too many questions"}}
    with server((429, busy), headers={"Retry-After": "3600"}) as (url, _), at(url) as searches:
        with pytest.raises(SearchError, match="too many questions") as failed:
            searches.search([QueryPicture(id="a" * 64)])
        assert failed.value.status == 429


def test_a_connection_that_was_closed_meanwhile_is_opened_again() -> None:
    with server((200, {"k": 1}), (200, {"k": 2}), headers={"Connection": "close"}) as (url, heard), at(url) as searches:
        assert searches.search([QueryPicture(id="a" * 64)]) == {"k": 1}
        assert searches.search([QueryPicture(id="a" * 64)]) == {"k": 2}
        assert len(heard.requests) == 2


@pytest.mark.parametrize("said", [b"<html>a proxy's page</html>", b"[]", b'{"error": "no"}'])
def test_another_program_is_said_to_be_one(said: bytes) -> None:
    with server((500, said)) as (url, _), at(url) as searches, pytest.raises(SearchError, match="HTTP 500"):
        searches.status()
    with server((200, b"<html>")) as (url, _), at(url) as searches, pytest.raises(SearchError, match="is it another"):
        searches.status()


def test_nothing_there_and_no_tls_for_a_token(tmp_path: Path) -> None:
    with pytest.raises(SearchError, match="does not answer: connection refused") as failed:
        at("http://127.0.0.1:1").status()
    assert not failed.value.answered
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    with pytest.raises(SearchError, match="use https"):
        at("http://192.0.2.1:30680", token).status()


def test_an_original_is_written_whole_or_said_to_be_cut_off() -> None:
    with server((200, b"whole")) as (url, heard), at(url) as searches:
        file = io.BytesIO()
        searches.original("a" * 64, file, 2)
        assert file.getvalue() == b"whole"
        assert heard.requests[0][0] == f"/originals/{'a' * 64}?source=2&download=1"
    with (
        server((200, b"cut"), headers={"Content-Length": "9", "Connection": "close"}) as (url, _),
        at(url) as searches,
        pytest.raises(SearchError),
    ):
        searches.original("a" * 64, io.BytesIO())
