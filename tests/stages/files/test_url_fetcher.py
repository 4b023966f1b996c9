"""Pictures fetched by URL from small real servers: what is asked, what is refused, and within which limits."""

import ipaddress
import socket
import ssl
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from stages.files.url_fetcher import FetchedFile, FetchError, FetchLimits, fetch, fetch_newer, resolve
from tests.certificates import self_signed
from tests.stages.serving.web_servers import saying, web

HERE = FetchLimits(bytes=1 << 20, seconds=20, allowed=(ipaddress.ip_network("127.0.0.0/8"),))


def refused(url: str, limits: FetchLimits = HERE) -> FetchError:
    with pytest.raises(FetchError) as caught:
        fetch(url, limits)
    return caught.value


def test_a_file_is_fetched_with_the_query_and_without_anything_that_tells_of_the_user() -> None:
    with web(saying(b"content")) as server:
        assert fetch(server.url("/a%20b.png?x=1#part"), HERE) == b"content"
        assert server.asked[0].startswith("GET /a%20b.png?x=1 HTTP/1.1\r\n")
        names = {line.partition(":")[0] for line in server.asked[0].split("\r\n")[1:] if line}
        assert names == {"Host", "Accept-Encoding", "Accept", "User-Agent"}
        assert f"Host: 127.0.0.1:{server.port}\r\n" in server.asked[0]


def test_a_file_in_chunks_is_put_together() -> None:
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    with web(lambda connection, _: connection.sendall(chunks)) as server:
        assert fetch(server.url(), HERE) == b"abcde"


def test_redirects_are_followed_up_to_a_limit() -> None:
    def behave(connection: socket.socket, path: str) -> None:
        at = int(path.removeprefix("/"))
        behaviour = saying(b"", f"Location: /{at - 1}", status="302 Found") if at else saying(b"there")
        behaviour(connection, path)

    with web(behave) as server:
        assert fetch(server.url("/5"), HERE) == b"there"
        assert "redirects more than 5 times" in refused(server.url("/6")).message


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/a.png",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "data:image/png;base64,AAAA",
        "//127.0.0.1/",
        "127.0.0.1",
        "http://",
        "http:///a.png",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:x/",
        "http://user@127.0.0.1/",
        "http://user:secret@127.0.0.1/",
        "http://[::1/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/\r\nHost: elsewhere",
        "http://127.0.0.1/ä",
        "http://exa\x00mple/",
    ],
)
def test_what_is_not_a_url_of_the_web_is_refused_with_a_sentence(url: str) -> None:
    refusal = refused(url)
    assert (refusal.status, refusal.code) == (422, "url-not-fetched")
    assert refusal.message.startswith(("url must", "this is not a valid URL"))


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "168.63.129.16",
        "[fe80::1]",
        "[fec0::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "224.0.0.1",
        "255.255.255.255",
        "[ff02::1]",
    ],
)
def test_addresses_that_are_not_public_are_refused_in_every_spelling(host: str) -> None:
    refusal = refused(f"http://{host}:1/", FetchLimits())
    assert (refusal.status, refusal.code) == (403, "private-address")
    assert "not on the public internet" in refusal.message


def test_a_redirect_to_a_private_address_is_refused_before_anything_is_sent_there() -> None:
    only = replace(HERE, allowed=(ipaddress.ip_network("127.0.0.1/32"),))
    with web(saying(b"secret")) as inner:
        target = f"Location: http://127.0.0.2:{inner.port}/secret"
        with web(saying(b"", target, status="301 Moved Permanently")) as outer:
            assert refused(outer.url(), only).code == "private-address"
        with web(saying(b"", "Location: file:///etc/passwd", status="302 Found")) as outer:
            assert refused(outer.url(), only).code == "url-not-fetched"
        assert inner.asked == []


def test_the_address_that_was_checked_is_the_one_that_is_asked() -> None:
    """A name of an attacker's that leads to another address each time it is resolved."""
    resolved: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        resolved.append(host)
        return ["127.0.0.1"] if len(resolved) == 1 else ["127.0.0.2"]

    only = replace(HERE, allowed=(ipaddress.ip_network("127.0.0.1/32"),))
    with web(saying(b"content")) as server:
        assert fetch(server.url(host="attacker.test"), only, rebinding) == b"content"
        assert resolved == ["attacker.test"]
        assert f"Host: attacker.test:{server.port}" in server.asked[0]
    with web(lambda connection, path: saying(b"", "Location: /again", status="302 Found")(connection, path)) as server:
        resolved.clear()
        with pytest.raises(FetchError) as caught:
            fetch(server.url(host="attacker.test"), only, rebinding)
        assert (caught.value.code, len(server.asked)) == ("private-address", 1)


def test_a_name_that_is_not_resolved_in_time_is_given_up() -> None:
    stuck = threading.Event()

    def never(host: str, port: int) -> list[str]:
        stuck.wait(60)
        return ["127.0.0.1"]

    try:
        with pytest.raises(FetchError) as caught:
            fetch("http://attacker.test/", replace(HERE, seconds=0.2), never)
    finally:
        stuck.set()
    assert caught.value.code == "url-not-fetched" and "0.2 s" in caught.value.message


def test_a_name_with_one_private_address_among_public_ones_is_refused() -> None:
    with pytest.raises(FetchError) as caught:
        fetch("http://mixed.test/", FetchLimits(), lambda host, port: ["8.8.8.8", "127.0.0.1"])
    assert caught.value.code == "private-address"


def test_another_address_is_asked_where_the_first_cannot_be_reached() -> None:
    with web(saying(b"content")) as server:
        addresses = ["127.0.0.2", "127.0.0.1"]  # the server listens on the second one alone
        assert fetch(server.url(host="two.test"), HERE, lambda host, port: addresses) == b"content"


def test_a_host_that_does_not_exist_and_one_that_does_not_listen() -> None:
    assert "no host" in refused("http://nothing.invalid/").message
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    assert "cannot be reached" in refused(f"http://127.0.0.1:{port}/").message


def test_files_that_are_too_large_are_refused() -> None:
    def endless(connection: socket.socket, _: str) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(bytes(1 << 16))

    with web(endless) as server:
        refusal = refused(server.url())
        assert (refusal.status, refusal.code) == (413, "too-large")
        assert "1,048,576 bytes" in refusal.message
    with web(
        lambda connection, _: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n")
    ) as server:
        assert refused(server.url()).code == "too-large"


def test_a_file_that_is_cut_off_is_refused() -> None:
    with web(lambda connection, _: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")) as server:
        assert "cut off" in refused(server.url()).message


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"])
def test_single_bytes_now_and_then_do_not_extend_the_time(begin: bytes) -> None:
    over = threading.Event()

    def drip(connection: socket.socket, _: str) -> None:
        connection.sendall(begin)
        while not over.wait(0.02):
            connection.sendall(b"x")

    with web(drip) as server:
        refusal = refused(server.url(), replace(HERE, seconds=0.5))
        assert refusal.message == "the URL did not answer within 0.5 s"
    over.set()


def test_errors_of_the_server_are_told() -> None:
    with web(saying(b"no", status="404 Not Found")) as server:
        assert refused(server.url()).message == "127.0.0.1 answers with HTTP 404"
    with web(lambda connection, _: connection.sendall(b"SSH-2.0-OpenSSH\r\n")) as server:
        assert "does not answer as a web server does" in refused(server.url()).message
    with web(lambda connection, _: None) as server:
        assert "does not answer as a web server does" in refused(server.url()).message


def test_certificates_are_checked(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*self_signed(tmp_path))
    with web(saying(b"content"), lambda raw: context.wrap_socket(raw, server_side=True)) as server:
        assert "cannot be reached" in refused(f"https://127.0.0.1:{server.port}/").message
        assert server.asked == []


def test_the_system_resolves_names() -> None:
    assert "127.0.0.1" in resolve("localhost", 80)


def test_what_has_not_changed_is_not_fetched_again() -> None:
    asked: list[str] = []

    def behave(connection: socket.socket, path: str) -> None:
        asked.append(path)
        behaviour = (
            saying(b"new", 'ETag: "2"', "Last-Modified: then") if len(asked) % 2 else saying(b"", status="304 Not")
        )
        behaviour(connection, path)

    with web(behave) as server:
        found = fetch_newer(server.url(), HERE, '"1"', "before")
        assert found == FetchedFile(b"new", '"2"', "then")
        assert 'If-None-Match: "1"' in server.asked[0] and "If-Modified-Since: before" in server.asked[0]
        assert fetch_newer(server.url(), HERE, found.etag, found.modified) is None
        fetch(server.url(), HERE)
        with pytest.raises(FetchError, match="HTTP 304"):  # nobody asked whether it had changed
            fetch(server.url(), HERE)


@pytest.mark.parametrize(
    ("status", "temporary"), [("404 Not Found", False), ("403 No", False), ("503 Busy", True), ("429 Wait", True)]
)
def test_a_refusal_says_whether_to_ask_again(status: str, temporary: bool) -> None:
    with web(saying(b"no", "Retry-After: 7", status=status)) as server:
        found = refused(server.url())
        assert (found.temporary, found.wait) == (temporary, 7)
    assert refused(server.url()).temporary
