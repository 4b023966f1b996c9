"""The places that URLs may lead to: directories with their links, addresses with redirects and changing names."""

from __future__ import annotations

import http.server
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localpachd.errors import FailedPrecondition, PachError
from localpachd.storage import object_urls, url_reach
from localpachd.storage.url_reach import UrlReach, network
from tests.http_servers import serving

HERE = (network("127.0.0.1/32"),)


def read(url: str, reach: UrlReach, recursive: bool = False) -> dict[str, bytes]:
    return {name: b"".join(pieces) for name, pieces in object_urls.download(url, reach, recursive)}


def write(url: str, reach: UrlReach, path: str = "/f") -> int:
    return object_urls.upload(url, [(path, iter([b"new"]))], reach)


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    """A directory that URLs may name, beside a file that they may not."""
    (tmp_path / "secret").write_text("hidden")
    (tmp_path / "allowed" / "d").mkdir(parents=True)
    (tmp_path / "allowed" / "d" / "f").write_text("shown")
    return tmp_path / "allowed"


def test_no_file_is_reached_unless_its_directory_is_named(allowed: Path) -> None:
    for scheme in ("file", "local"):
        for call in (read, write):
            with pytest.raises(FailedPrecondition, match="URLs of files are turned off on this server; its option"):
                call(f"{scheme}://{allowed}/d/f", UrlReach())
        with pytest.raises(FailedPrecondition, match="turned off"):
            object_urls.check_reach(f"{scheme}://{allowed}/d", UrlReach())
    assert read(f"file://{allowed}/d/f", UrlReach((allowed,))) == {"": b"shown"}
    assert read(f"file://{allowed}", UrlReach((allowed,)), recursive=True) == {"/d/f": b"shown"}
    assert write(f"file://{allowed}/d/new", UrlReach((allowed,))) == 3
    assert (allowed / "d" / "new" / "f").read_text() == "new"


@pytest.mark.parametrize("way", ["beside", "dots", "link to a file", "link to a directory", "link in a link", "/proc"])
def test_no_way_leads_out_of_a_directory(allowed: Path, way: str) -> None:
    (allowed / "file").symlink_to(allowed.parent / "secret")
    (allowed / "up").symlink_to(allowed.parent)
    (allowed / "d" / "again").symlink_to("../up")
    path = {
        "beside": f"{allowed.parent}/secret",
        "dots": f"{allowed}/d/../../secret",
        "link to a file": f"{allowed}/file",
        "link to a directory": f"{allowed}/up/secret",
        "link in a link": f"{allowed}/d/again/secret",
        "/proc": f"/proc/self/root{allowed.parent}/secret",
    }[way]
    with pytest.raises(FailedPrecondition, match="not in a directory that --file-urls allows"):
        read(f"file://{path}", UrlReach((allowed,)))
    with pytest.raises(FailedPrecondition, match="--file-urls allows|belongs to the server"):
        write(f"file://{path}", UrlReach((allowed,)), "")
    assert (allowed.parent / "secret").read_text() == "hidden"


def test_a_link_that_leads_out_is_found_in_a_whole_directory(allowed: Path) -> None:
    (allowed / "file").symlink_to(allowed.parent / "secret")
    with pytest.raises(FailedPrecondition, match="--file-urls allows"):
        read(f"file://{allowed}", UrlReach((allowed,)), recursive=True)


def test_links_within_a_directory_are_followed(allowed: Path) -> None:
    (allowed / "again").symlink_to("d/f")
    (allowed / "directory").symlink_to("d")
    assert read(f"file://{allowed}/directory/f", UrlReach((allowed,))) == {"": b"shown"}
    assert read(f"file://{allowed}", UrlReach((allowed,)), recursive=True) == {"/again": b"shown", "/d/f": b"shown"}


def test_a_named_link_stands_for_its_directory(allowed: Path) -> None:
    (allowed.parent / "other name").symlink_to(allowed)
    assert read(f"file://{allowed}/d/f", UrlReach((allowed.parent / "other name",))) == {"": b"shown"}


def test_the_servers_own_files_are_never_reached(allowed: Path) -> None:
    reach = UrlReach((allowed.parent,), private=(allowed, allowed.parent / "secret"))
    (allowed.parent / "link").symlink_to(allowed)
    for path in (allowed, allowed / "d" / "f", allowed.parent / "secret", allowed.parent / "link" / "d" / "f"):
        for call in (read, write):
            with pytest.raises(FailedPrecondition, match="belongs to the server or the system"):
                call(f"file://{path}", reach)
    with pytest.raises(FailedPrecondition, match="belongs to the server"):
        read(f"file://{allowed.parent}", reach, recursive=True)
    with pytest.raises(FailedPrecondition, match="belongs to the server"):
        write(f"file://{allowed.parent}", reach, f"/{allowed.name}/d/f")
    assert (allowed / "d" / "f").read_text() == "shown"


@pytest.mark.parametrize("path", ["/proc/self/environ", "/proc/self/mem", "/sys/kernel/profiling", "/dev/zero"])
def test_the_kernels_files_are_never_reached(path: str) -> None:
    with pytest.raises(PachError, match="belongs to the server or the system"):
        read(f"file://{path}", UrlReach((Path("/"),)))


def test_pipes_are_not_waited_for(allowed: Path) -> None:
    os.mkfifo(allowed / "pipe")
    with pytest.raises(PachError, match="pipe is not a file"):
        read(f"file://{allowed}/pipe", UrlReach((allowed,)))
    assert read(f"file://{allowed}", UrlReach((allowed,)), recursive=True) == {"/d/f": b"shown"}


def test_a_link_that_appears_later_leads_nowhere(allowed: Path) -> None:
    """Between the check of a path and its opening a directory of it is replaced by a link."""
    swapped: list[None] = []
    (allowed / "d").rename(allowed.parent / "moved")
    (allowed.parent / "evil").mkdir()
    (allowed.parent / "evil" / "f").write_text("hidden")
    real = os.path.realpath

    def late(path: Any, **how: Any) -> str:
        found = str(real(path, **how))
        if not swapped and found.endswith("/d/f"):
            swapped.append(None)
            (allowed / "d").symlink_to(allowed.parent / "evil")
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os.path, "realpath", late)
        with pytest.raises(PachError, match="file:"):
            read(f"file://{allowed}/d/f", UrlReach((allowed,)))
    assert swapped


def test_a_file_whose_connection_ends_early_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            caller, _ = server.accept()
            with caller:
                caller.recv(1 << 16)
                caller.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(PachError, match="the connection ended 7 bytes before the end of the file"):
            read(f"http://127.0.0.1:{server.getsockname()[1]}/f", UrlReach(networks=HERE))
        thread.join()


class _Site(http.server.BaseHTTPRequestHandler):
    """Answers with its own address, or leads to the one that the query names."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        target = self.path.partition("?")[2]
        body = str(self.connection.getsockname()[0]).encode()
        self.send_response(302 if target else 200)
        if target:
            self.send_header("Location", target)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a web site on all addresses of the loopback."""
    _Site.asked = []
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), _Site)
    with serving(server):
        yield server.server_port


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.0.0.1", "0.0.0.0", "[::1]"])
def test_the_loopback_is_not_asked_by_any_name(port: int, host: str) -> None:
    with pytest.raises(FailedPrecondition, match="is not on the public internet; the server's option --url-network"):
        read(f"http://{host}:{port}/", UrlReach())
    assert _Site.asked == []


def test_an_allowed_network_is_asked(port: int) -> None:
    assert read(f"http://127.0.0.1:{port}/a?", UrlReach(networks=HERE)) == {"": b"127.0.0.1"}
    with pytest.raises(FailedPrecondition, match="not on the public internet"):
        read(f"http://127.0.0.2:{port}/", UrlReach(networks=HERE))


def test_redirects_are_checked_in_the_same_way(port: int) -> None:
    reach = UrlReach(networks=HERE)
    assert read(f"http://127.0.0.1:{port}/?/moved", reach) == {"": b"127.0.0.1"}
    for target in (f"http://127.0.0.2:{port}/", "http://169.254.169.254/latest/meta-data/"):
        with pytest.raises(FailedPrecondition, match="not on the public internet"):
            read(f"http://127.0.0.1:{port}/?{target}", reach)
    for target in ("file:///etc/hostname", "ftp://127.0.0.1/x"):
        with pytest.raises(PachError, match="is not a URL of the web"):
            read(f"http://127.0.0.1:{port}/?{target}", reach)
    with pytest.raises(PachError, match="more than 10 redirects"):
        read(f"http://127.0.0.1:{port}/??", reach)


def test_a_name_that_changes_its_address_is_resolved_once(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver gives an allowed address, and another one whenever it is asked again."""
    given: list[str] = []
    original = socket.getaddrinfo

    def resolver(host: str, *rest: Any, **how: Any) -> Any:
        if host != "changing.example":
            return original(host, *rest, **how)
        given.append(host)
        return original("127.0.0.1" if len(given) == 1 else "127.0.0.2", *rest, **how)

    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    assert read(f"http://changing.example:{port}/", UrlReach(networks=HERE)) == {"": b"127.0.0.1"}
    assert given == ["changing.example"]
    given.clear()
    assert UrlReach(networks=HERE).endpoint(f"http://changing.example:{port}/x") == f"http://127.0.0.1:{port}/x"


def test_one_private_address_of_a_name_suffices_to_refuse_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolver(*_: Any, **__: Any) -> Any:
        return [(0, 0, 0, "", (address, 80)) for address in ("93.184.216.34", "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    with pytest.raises(FailedPrecondition, match="not on the public internet"):
        read("http://both.example/", UrlReach())


@pytest.mark.parametrize(
    "url", ["minio://127.0.0.1:{}/bucket/x", "s3://bucket/x?endpoint=127.0.0.1:{}&disableSSL=true"]
)
def test_endpoints_that_a_url_names_need_an_allowed_network(port: int, url: str) -> None:
    """They get requests with the server's signature, and may redirect them."""
    for call in (read, write):
        with pytest.raises(FailedPrecondition, match="--url-network allows, so it cannot be an endpoint"):
            call(url.format(port), UrlReach())
    with pytest.raises(FailedPrecondition, match="cannot be an endpoint"):
        UrlReach().endpoint("https://93.184.216.34/")
    assert _Site.asked == []


def test_a_name_that_is_not_resolved_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: stuck.wait(60))
    monkeypatch.setattr(url_reach, "_SECONDS", 0.2)
    for call in (read, write):
        with pytest.raises(PachError, match="the addresses of attacker.test are not known after 0.2 s"):
            call("http://attacker.test/x" if call is read else "minio://attacker.test/bucket/x", UrlReach())
    stuck.set()


@pytest.mark.parametrize("text", ["", "10.0.0.0/33", "host", "10.0.0.1/8"])
def test_networks_that_cannot_be(text: str) -> None:
    with pytest.raises(PachError, match="is not a network such as"):
        network(text)
