"""An object store on this machine, with the calls of S3 that are needed here."""

import hashlib
import http.server
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, unquote, urlsplit

import pytest


class Bucket(http.server.BaseHTTPRequestHandler):
    """S3's PutObject, GetObject, HeadObject, DeleteObjects and ListObjectsV2, and multipart uploads."""

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
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if url.query == "delete":
            gone = re.findall(rb"<Key>(.*?)</Key>", body)
            for key in gone:
                self.held.pop(f"{url.path.rstrip('/')}/{key.decode()}", None)
            said = b"".join(b"<Deleted><Key>%s</Key></Deleted>" % key for key in gone)
            self._reply(b"<DeleteResult>%s</DeleteResult>" % said)
            return
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
        elif (data := self.held.get(unquote(url.path))) is not None:
            unchanged = self.headers["If-None-Match"] == _etag(data)
            self._reply(b"" if unchanged else data, 304 if unchanged else 200, _etag(data))
        else:
            self._reply(b"", 404)

    do_HEAD = do_GET

    def _listing(self, bucket: str, prefix: str) -> bytes:
        found = "".join(
            f"<Contents><Key>{path.removeprefix(bucket)}</Key><Size>{len(data)}</Size><ETag>{_etag(data)}</ETag>"
            "<LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
            for path, data in sorted(self.held.items())
            if path.startswith(bucket + prefix)
        )
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>".encode()

    def _reply(self, body: bytes, status: int = 200, etag: str = '"1"') -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Length", str(len(body))),
            ("ETag", etag),
            ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body if self.command != "HEAD" else b"")


def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


@contextmanager
def serving() -> Iterator[str]:
    """The host:port of an empty store, which the variables of Amazon's tools name meanwhile."""
    Bucket.held, Bucket.parts = {}, {}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    found = f"127.0.0.1:{server.server_port}"
    variables = {"AWS_ENDPOINT_URL": f"http://{found}", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
