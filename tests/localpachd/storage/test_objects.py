"""Files outside the server: directories, an object store with the S3 calls needed here, and the web."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from localpachd.errors import PachError
from localpachd.storage import objects

FILES = {"/a/b.txt": b"one two", "/empty": b"", "/odd #%?*~ name": b"x" * 100}


class Bucket(http.server.BaseHTTPRequestHandler):
    """S3's PutObject, GetObject and ListObjectsV2, and multipart uploads."""

    protocol_version = "HTTP/1.1"
    held: dict[str, bytes]
    parts: dict[str, bytes]

    def log_message(self, *_: object) -> None:
        pass

    def do_PUT(self) -> None:
        url = urlsplit(self.path)
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if number := parse_qs(url.query).get("partNumber"):
            self.parts[number[0]] = data
        else:
            self.held[unquote(url.path)] = data
        self._reply(b"")

    def do_POST(self) -> None:
        url = urlsplit(self.path)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if url.query.startswith("uploads"):
            self._reply(b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
            return
        self.held[unquote(url.path)] = b"".join(self.parts.pop(number) for number in sorted(self.parts, key=int))
        self._reply(b"<CompleteMultipartUploadResult><ETag>1</ETag></CompleteMultipartUploadResult>")

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        if "list-type" in query:
            self._reply(self._listing(url.path.rstrip("/") + "/", query.get("prefix", [""])[0]))
        elif unquote(url.path) in self.held:
            self._reply(self.held[unquote(url.path)])
        else:
            self._reply(b"", 404)

    def _listing(self, bucket: str, prefix: str) -> bytes:
        found = "".join(
            f"<Contents><Key>{path.removeprefix(bucket)}</Key><Size>{len(data)}</Size><ETag>1</ETag>"
            "<LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
            for path, data in sorted(self.held.items())
            if path.startswith(bucket + prefix)
        )
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>".encode()

    def _reply(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Length", str(len(body))),
            ("ETag", '"1"'),
            ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The host:port of the object store that these tests use as S3."""
    Bucket.held, Bucket.parts = {}, {}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    found = f"127.0.0.1:{server.server_port}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{found}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


def upload(url: str, files: dict[str, bytes]) -> int:
    return objects.upload(url, ((path, iter([data[:3], data[3:]])) for path, data in files.items()))


def download(url: str, recursive: bool = False) -> dict[str, bytes]:
    return {name: b"".join(pieces) for name, pieces in objects.download(url, recursive)}


@pytest.mark.parametrize("scheme", ["file", "local"])
def test_files_are_copied_to_a_directory(tmp_path: Path, scheme: str) -> None:
    url = f"{scheme}://{tmp_path}/out"
    assert upload(url, FILES) == 107
    assert {f"/{each.relative_to(tmp_path / 'out')}": each.read_bytes() for each in (tmp_path / "out").rglob("*")
            if each.is_file()} == FILES  # fmt: skip
    assert download(url, recursive=True) == FILES
    assert download(f"{url}/a/b.txt") == {"": b"one two"}


def test_copying_replaces_files_and_leaves_others(tmp_path: Path) -> None:
    upload(f"file://{tmp_path}", {"/a": b"old", "/b": b"kept"})
    upload(f"file://{tmp_path}", {"/a": b"new"})
    assert download(f"file://{tmp_path}", recursive=True) == {"/a": b"new", "/b": b"kept"}


def test_a_file_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(PachError, match="/a: "):
        upload(f"file://{tmp_path}", {"/a": b"x"})
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_files_are_copied_to_a_bucket(address: str) -> None:
    assert upload("s3://bucket/some/dir", FILES) == 107
    assert Bucket.held == {f"/bucket/some/dir{path}": data for path, data in FILES.items()}
    assert download("s3://bucket/some/dir", recursive=True) == FILES
    assert download("s3://bucket/some/dir/a/b.txt") == {"": b"one two"}
    assert download(f"minio://{address}/bucket/some/dir/a/b.txt") == {"": b"one two"}
    assert download(f"s3://bucket/some/dir/empty?endpoint={address}&disableSSL=true") == {"": b""}


def test_a_prefix_need_not_be_a_directory(address: str) -> None:
    upload("s3://bucket", {"/run-1/a": b"1", "/run-2/a": b"2", "/other": b"3"})
    assert download("s3://bucket/run-", recursive=True) == {"1/a": b"1", "2/a": b"2"}


def test_a_large_object_is_uploaded_in_parts(address: str) -> None:
    data = bytes(range(256)) * (5 << 12) * 4
    assert objects.upload("s3://bucket", [("/large", (data[at : at + 100_000] for at in range(0, len(data), 100_000)))])
    assert Bucket.held["/bucket/large"] == data


def test_the_web_is_read(address: str) -> None:
    Bucket.held["/some/page"] = b"hello"
    assert download(f"http://{address}/some/page", recursive=True) == {"": b"hello"}
    with pytest.raises(PachError, match='error retrieving content from "http://.*/nothing": 404 Not Found'):
        download(f"http://{address}/nothing")


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("ftp://host/x", "unrecognized object store: ftp"),
        ("http://host/x", "unrecognized object store: http"),
        ("/just/a/path", "unrecognized object store: "),
        ("s3:///x", "has no bucket"),
        ("file://host/x", "is not the URL of a directory"),
        ("file:beside", "is not the URL of a directory"),
        ("local://", "is not the URL of a directory"),
        ("s3://bucket/x?regoin=eu-west-1", "unknown parameters regoin"),
    ],
)
def test_targets_that_are_not_writable_are_refused_at_once(url: str, text: str) -> None:
    with pytest.raises(PachError, match=text):
        objects.check_target(url)


def test_a_missing_source_is_an_error(address: str, tmp_path: Path) -> None:
    for url in ("s3://bucket/nothing", f"file://{tmp_path}/nothing"):
        with pytest.raises(PachError, match="nothing"):
            download(url)
