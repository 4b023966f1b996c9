"""The doors of the service, asked over HTTP: host, origin, token, cookie, headers, and the bodies that come in."""

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from stages.serving.answer.load_limiter import ServiceLimits
from stages.serving.follow.configuration import ServiceConfiguration
from stages.serving.follow.snapshots import Snapshot, SnapshotState
from stages.serving.http.access_control import session
from stages.serving.run.connections import ServiceConnection
from tests.conditions import until
from tests.stages.serving import services
from tests.stages.serving.services import NOWHERE, Answer, Service

TOKEN = "a-long-and-random-token"
LOADING = SnapshotState[Snapshot]("loading", "bringing the index")


@pytest.fixture(scope="module")
def local() -> Iterator[Service]:
    """A service for this machine alone."""
    with services.running(LOADING, bounds=ServiceLimits()) as service:
        yield service


@pytest.fixture(scope="module")
def guarded() -> Iterator[Service]:
    """A service with a token, behind a proxy."""
    configuration = ServiceConfiguration(NOWHERE, token=TOKEN, proxy="pictures.example.org")
    with services.running(LOADING, configuration, bounds=ServiceLimits(guess=0)) as service:
        yield service


def raw(service: Service, text: bytes) -> bytes:
    """All that the service sends for these bytes, until it closes the connection."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        connection.sendall(text)
        return received(connection)


def received(connection: socket.socket) -> bytes:
    said = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(1 << 16):
            said += piece
    return said


def status(said: bytes) -> int:
    return int(said.split(b" ")[1])


def code(said: bytes) -> str:
    return str(json.loads(said.partition(b"\r\n\r\n")[2])["error"]["code"])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST.", "[::1]", "127.1.2.3"])
def test_a_local_service_goes_by_the_names_of_this_machine(local: Service, host: str) -> None:
    assert local.ask("/status", headers={"Host": f"{host}:{local.port}"}).status == 200


@pytest.mark.parametrize(
    "host", ["attacker.example", "127.0.0.1.attacker.example", "10.0.0.1", "0.0.0.0", "2130706433", "[::2]"]
)
def test_a_name_of_an_attacker_that_leads_here_is_refused(local: Service, host: str) -> None:
    for path in ("/", "/status", "/library", "/docs", "/assets/main.js", "/nothing"):
        answer = local.ask(path, headers={"Host": f"{host}:{local.port}"})
        assert (answer.status, answer.code) == (403, "wrong-host")
    assert local.ask("/health", headers={"Host": "10.0.0.1"}).status == 200


def test_a_request_without_a_host_is_refused(local: Service) -> None:
    assert status(raw(local, b"GET /status HTTP/1.0\r\n\r\n")) == 400


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("Host", "localhost", "attacker.example"),
        ("Origin", "http://localhost", "http://attacker.example"),
        ("Sec-Fetch-Site", "same-origin", "cross-site"),
        ("Authorization", f"Bearer {TOKEN}", "Bearer other"),
        ("Content-Type", "image/png", "application/json"),
    ],
)
def test_a_header_that_decides_may_come_once(local: Service, name: str, one: str, other: str) -> None:
    """Another program on the way may heed the other one."""
    for first, second in ((one, other), (other, one), (one, one)):
        twice = f"{name}: {first}\r\n{name}: {second}\r\n" + ("" if name == "Host" else "Host: localhost\r\n")
        for method in ("GET", "POST"):
            text = f"{method} /status HTTP/1.1\r\n{twice}Connection: close\r\n\r\n"
            assert status(raw(local, text.encode())) == 400


@pytest.mark.parametrize(
    "host", ["", "[", "127.0.0.1:[", "localhost:x", "localhost:999999", "127.0.0.1:[::1]", "localhost/x", "a@localhost"]
)
def test_a_host_that_is_not_valid_is_refused(local: Service, guarded: Service, host: str) -> None:
    for service in (local, guarded):
        answer = service.ask("/status", headers={"Host": host})
        assert (answer.status, answer.code) == (400, "bad-request")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://attacker.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://["},
        {"Origin": "nonsense"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_other_sites_may_not_send_anything(local: Service, headers: Mapping[str, str]) -> None:
    answer = local.ask("/search", b"x", {"Content-Type": "image/png", **headers})
    assert (answer.status, answer.code) == (403, "wrong-origin")
    assert local.ask("/session", headers=headers, method="DELETE").code == "wrong-origin"
    assert local.ask("/status", headers=headers).status == 200


def test_the_page_itself_and_programs_may_send(local: Service) -> None:
    own = {"Origin": f"http://127.0.0.1:{local.port}", "Sec-Fetch-Site": "same-origin"}
    for headers in (own, {}, {"Sec-Fetch-Site": "none"}):
        assert local.ask("/search", b"x", {"Content-Type": "image/png", **headers}).code == "loading"


def test_the_token_opens_everything_and_nothing_else_does(guarded: Service) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer ä"},
        {"Cookie": f"lookalike-session={TOKEN}"},
        {"Cookie": "lookalike-session="},
        {"Cookie": ";;=;"},
    ):
        for path in ("/status", "/library", f"/images/{'0' * 64}", f"/originals/{'0' * 64}", "/metrics", "/nothing"):
            answer = guarded.ask(path, headers=headers)
            assert (answer.status, answer.code) == (401, "token-needed")
            assert answer.headers["www-authenticate"] == "Bearer"
            assert TOKEN not in answer.body.decode()
        assert guarded.search({"id": "0" * 64}).status == 401
        assert guarded.ask("/images/assets/x").status == 401  # open are those that begin so
    for scheme in ("Bearer", "bearer", "BEARER "):
        assert guarded.ask("/status", headers={"Authorization": f"{scheme} {TOKEN}"}).status == 200


def test_what_tells_nothing_about_the_library_is_open(guarded: Service) -> None:
    for path in ("/", "/health", "/docs", "/openapi.json", "/favicon.ico", "/assets/main.js"):
        assert guarded.ask(path).status == 200
    for path in ("/assets/../status", "/assets/..%2fstatus", "//status", "/health/../status", "/assets/%2e%2e/status"):
        assert guarded.ask(path).status in (401, 404)


def test_open_paths_tell_nothing_of_what_goes_on(guarded: Service) -> None:
    guarded.state = SnapshotState("failed", "the secret file of the library is gone")
    for path in ("/", "/health", "/ready", "/docs", "/openapi.json"):
        assert "secret" not in guarded.ask(path).body.decode()
    assert guarded.ask("/ready").data == {"state": "failed"}
    status = guarded.ask("/status", headers={"Authorization": f"Bearer {TOKEN}"})
    assert status.data["message"] == "the secret file of the library is gone"
    guarded.state = LOADING


def sign_in(service: Service, body: bytes) -> Answer:
    return service.ask("/session", body, {"Content-Type": "application/json"})


def test_signing_in_gives_a_cookie_from_which_the_token_does_not_follow(guarded: Service) -> None:
    answer = sign_in(guarded, json.dumps({"token": TOKEN}).encode())
    assert answer.status == 200
    cookie = answer.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Secure", "Path=/", f"Max-Age={30 * 86400}"))
    assert "domain" not in cookie.lower()
    pair = cookie.partition(";")[0]
    assert TOKEN not in cookie
    others = 'other={"a": [1, 2]}; odd name=x'
    for given in (pair, f"{others}; {pair}", f"{pair}; {others}"):
        assert guarded.ask("/status", headers={"Cookie": given}).status == 200
    assert guarded.ask("/status", headers={"Cookie": pair[:-1]}).status == 401
    name = pair.partition("=")[0]
    left = guarded.ask("/session", headers={"Cookie": pair}, method="DELETE")
    assert left.status == 200 and f'{name}=""' in left.headers["set-cookie"]


def test_a_cookie_is_of_one_port_and_of_a_time(guarded: Service) -> None:
    def answered(port: int, until: int) -> int:
        cookie = f"lookalike-session-{port}={session(TOKEN, until)}"
        return guarded.ask("/status", headers={"Cookie": cookie, "Host": f"127.0.0.1:{guarded.port}"}).status

    now = int(time.time())
    assert answered(guarded.port, now + 1000) == 200
    assert answered(guarded.port + 1, now + 1000) == 401
    assert answered(guarded.port, now - 1) == 401
    later = session(TOKEN, now - 1).replace(str(now - 1), str(now + 1000))
    cookie = {"Cookie": f"lookalike-session-{guarded.port}={later}"}
    assert guarded.ask("/status", headers=cookie).status == 401


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (json.dumps({"token": "wrong"}).encode(), (401, "wrong-token")),
        (b'{"token": "\\ud800"}', (401, "wrong-token")),
        (b'{"token": 7}', (401, "wrong-token")),
        (b"[]", (401, "wrong-token")),
        (b"{}", (401, "wrong-token")),
        (b"not JSON", (400, "bad-request")),
        (b"\xff", (400, "bad-request")),
        (b'{"token": "' + b"x" * 10_000 + b'"}', (413, "too-large")),
    ],
)
def test_signing_in_with_anything_else_is_refused(guarded: Service, body: bytes, expected: tuple[int, str]) -> None:
    answer = sign_in(guarded, body)
    assert (answer.status, answer.code) == expected
    assert "set-cookie" not in answer.headers


def test_a_service_without_a_token_has_nothing_to_sign_in_to(local: Service) -> None:
    assert sign_in(local, b'{"token": ""}').code == "wrong-token"


def test_every_response_has_the_headers_that_protect_its_reader(local: Service, guarded: Service) -> None:
    answers = [local.ask(path) for path in ("/", "/status", "/nothing", "/docs", "/assets/main.js", "/library")]
    answers += [guarded.ask("/status"), local.ask("/status", headers={"Host": "attacker.example"})]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_refusals_at_the_door_are_counted(guarded: Service) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}

    def counted() -> str:
        return guarded.ask("/metrics", headers=headers).body.decode()

    guarded.ask("/library")
    assert 'lookalike_serve_requests_total{route="none",status="401"}' in counted()


def test_files_outside_of_the_page_are_not_sent(local: Service) -> None:
    for path in (
        "/assets/../app.py",
        "/assets/..%2fapp.py",
        "/assets/%2e%2e/app.py",
        "/assets/....//app.py",
        "/assets//etc/passwd",
        "/assets/%00main.js",
        "/assets/main.js%00",
        "/assets/__init__.py",
        "/assets/",
    ):
        assert (local.ask(path).status, local.ask(path).code) == (404, "not-found")


def test_a_file_of_the_page_that_the_browser_has_is_not_sent_again(local: Service) -> None:
    first = local.ask("/assets/main.js")
    again = local.ask("/assets/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (first.status, again.status, again.body) == (200, 304, b"")


def test_requests_that_are_not_http_are_refused(local: Service) -> None:
    for text in (
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
        b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
    ):
        assert 400 <= status(raw(local, text)) < 500
    assert local.ask("/health").status == 200


def test_a_flood_of_headers_ends_the_connection(local: Service) -> None:
    flood = b"".join(b"X-%d: %s\r\n" % (at, b"y" * 1000) for at in range(2000))
    for text in (b"GET /status HTTP/1.1\r\nHost: localhost\r\n" + flood, b"GET /" + b"a" * 2_000_000):
        with socket.create_connection(("127.0.0.1", local.port), timeout=60) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(text)
            said = received(connection)  # "" if what was not read has broken the connection off
        assert not said or status(said) == 400
    assert local.ask("/health").status == 200


def test_unusual_methods_are_refused(local: Service) -> None:
    for method in ("PUT", "PATCH", "TRACE", "OPTIONS", "FOO"):
        assert local.ask("/status", method=method).code == "wrong-method"
    for method in ("PUT", "FOO"):
        assert local.ask("/nothing", method=method).status == 404


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with an empty library that takes 100 kB, and waits for half a second."""
    bounds = ServiceLimits(body_bytes=100_000, idle=0.5, whole=1, linger=1)
    with services.running(SnapshotState("empty", "no pictures yet"), bounds=bounds) as service:
        yield service


def begun(headers: bytes) -> bytes:
    return b"POST /session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + headers + b"\r\n"


def test_a_body_that_is_announced_to_be_too_large_is_refused_at_once(small: Service) -> None:
    answer = small.ask("/search", bytes(100_001), {"Content-Type": "image/png"})
    assert (answer.status, answer.code, answer.headers["connection"]) == (413, "too-large", "close")
    assert status(raw(small, begun(b"Content-Length: 100001\r\n"))) == 413


def test_the_sender_of_a_body_that_is_too_large_reads_the_reason_even_after_it_has_sent_all(small: Service) -> None:
    for _ in range(2):
        answer = small.ask("/search", bytes(10_000_000), {"Content-Type": "image/png"})
        assert (answer.status, answer.code) == (413, "too-large")


def test_a_body_in_chunks_that_gets_too_large_is_refused(small: Service) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", small.port, timeout=60)
    connection.request("POST", "/session", iter([b" " * 1000] * 200), {"Content-Type": "application/json"})
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())["error"]["code"]) == (413, "too-large")
    connection.close()


def test_a_body_that_stops_is_refused_with_a_reason(small: Service) -> None:
    said = raw(small, begun(b"Content-Length: 1000\r\n") + b"{")
    assert (status(said), code(said)) == (408, "too-slow")


def test_a_body_that_never_ends_is_refused_in_the_end(small: Service) -> None:
    with socket.create_connection(("127.0.0.1", small.port), timeout=60) as connection:
        connection.sendall(begun(b"Content-Length: 100000\r\n"))
        over = threading.Event()

        def drip() -> None:
            while not over.wait(0.1):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        said = received(connection)
        over.set()
        thread.join()
    assert (status(said), code(said)) == (408, "too-slow")


def test_a_client_that_goes_away_while_it_sends_is_counted_and_is_not_a_fault(small: Service) -> None:
    name = 'lookalike_serve_requests_total{route="/session",status="499"}'
    before = small.metric(name)
    with socket.create_connection(("127.0.0.1", small.port), timeout=60) as connection:
        connection.sendall(begun(b"Content-Length: 1000\r\n") + b"{")
    until(lambda: small.metric(name) != before)
    assert small.metric(name) == before + 1


@pytest.fixture
def few_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the connections that a service may have."""
    for name in ("most", "share", "spare"):
        monkeypatch.setattr(ServiceConnection, name, getattr(ServiceConnection, name) // 10)


@pytest.mark.usefixtures("few_connections")
def test_silent_connections_keep_nobody_out(local: Service) -> None:
    with contextlib.ExitStack() as held:
        for at in range(120):
            silent = held.enter_context(socket.create_connection(("127.0.0.1", local.port), timeout=60))
            if at % 2:
                with contextlib.suppress(ConnectionError):
                    silent.sendall(b"POST /search HTTP/1.1\r\nHost: localhost\r\n")
        for path in ("/health", "/metrics", "/status", "/"):
            assert local.ask(path).status == 200


@pytest.mark.usefixtures("few_connections")
def test_probes_are_answered_while_bodies_that_do_not_come_fill_the_service(local: Service) -> None:
    with contextlib.ExitStack() as held:

        def refused_beside(more: int) -> bool:
            for _ in range(more):
                slow = held.enter_context(socket.create_connection(("127.0.0.1", local.port), timeout=60))
                with contextlib.suppress(ConnectionError):
                    slow.sendall(begun(b"Content-Length: 1000\r\n") + b"{")
            return local.ask("/status").status == 429

        refused_beside(95)
        until(lambda: refused_beside(1))
        for path in ("/health", "/metrics"):
            assert local.ask(path).status == 200
        refused = local.search({"id": "0" * 64})
        assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "busy", "1")


def test_a_certificate_makes_the_cookie_secure(tmp_path: Path) -> None:
    for configuration, secure in (
        (ServiceConfiguration(NOWHERE, token=TOKEN), False),
        (ServiceConfiguration(NOWHERE, token=TOKEN, certificate=tmp_path / "a", key=tmp_path / "b"), True),
    ):
        with services.running(LOADING, configuration) as service:
            answer = sign_in(service, json.dumps({"token": TOKEN}).encode())
            assert ("Secure" in answer.headers["set-cookie"]) is secure
