"""Downloads from a real HTTP server: interrupted, resumed, wrong, and impossible ones."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pipelines.errors import LookalikeError
from pipelines.library.datasets.downloads import RemoteFile, download
from tests.http_servers import serving

CONTENT = bytes(range(256)) * 20_000


class Web(ThreadingHTTPServer):
    """Serves CONTENT: all of it, from an offset, or only its first bytes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str | None] = []
        self.cut: int | None = None
        self.ranges = True

    @property
    def remote(self) -> RemoteFile:
        url = f"http://127.0.0.1:{self.server_port}/file.tar.gz"
        return RemoteFile(url, "file.tar.gz", len(CONTENT), hashlib.md5(CONTENT).hexdigest())


class Handler(BaseHTTPRequestHandler):
    server: Web

    def do_GET(self) -> None:
        wanted = self.headers["Range"]
        self.server.asked.append(wanted)
        begin = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.ranges else 0
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(CONTENT) - begin))
        self.end_headers()
        self.wfile.write(CONTENT[begin : None if self.server.cut is None else begin + self.server.cut])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def web() -> Iterator[Web]:
    with serving(server := Web()):
        yield server


def test_an_interrupted_download_is_resumed(web: Web, tmp_path: Path) -> None:
    web.cut = 2_000_000
    for _ in range(2):
        with pytest.raises(LookalikeError, match="try again, which resumes the download"):
            download(web.remote, tmp_path)
    web.cut = None
    heard: list[int] = []
    path = download(web.remote, tmp_path / "", heard.append)
    assert path.read_bytes() == CONTENT
    assert web.asked == [None, "bytes=2000000-", "bytes=4000000-"]
    assert sum(heard) == len(CONTENT)
    assert heard[0] == 4_000_000
    assert [each.name for each in tmp_path.iterdir()] == ["file.tar.gz"]
    assert download(web.remote, tmp_path) == path
    assert len(web.asked) == 3


def test_without_ranges_the_download_starts_again(web: Web, tmp_path: Path) -> None:
    (tmp_path / "file.tar.gz.part").write_bytes(CONTENT[:1000])
    web.ranges = False
    heard: list[int] = []
    assert download(web.remote, tmp_path, heard.append).read_bytes() == CONTENT
    assert sum(heard) == len(CONTENT)


def test_a_wrong_file_is_deleted_and_reported(web: Web, tmp_path: Path) -> None:
    with pytest.raises(LookalikeError, match=r"sent a wrong file .* it was deleted"):
        download(replace(web.remote, md5="0" * 32), tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file.tar.gz").write_bytes(b"short")
    with pytest.raises(LookalikeError, match="has 5 bytes, not 5,120,000: delete it"):
        download(web.remote, tmp_path)


def test_without_a_network_the_message_names_the_manual_way(web: Web, tmp_path: Path) -> None:
    remote = replace(web.remote, url="http://127.0.0.1:1/file.tar.gz")
    with pytest.raises(LookalikeError) as said:
        download(remote, tmp_path)
    for words in (remote.url, "5,120,000 bytes", remote.md5, str(tmp_path / "file.tar.gz"), "refused"):
        assert words in str(said.value)
