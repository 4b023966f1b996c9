"""URLs of chunks over HTTP on the loopback, as a cluster's bucket signs them for those who may not read it."""

import hashlib
import hmac
import http.server
import logging
import secrets
import threading
import time
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from localpachd.errors import DataLoss, Unimplemented
from localpachd.storage.chunk_store import ChunkStore

_PAGE = "/chunks/"
_VALID = 24 * 3600
"""Seconds for which a URL leads to its chunk, as in Pachyderm (src/internal/storage/chunk/cdr.go:25)."""
_PATIENCE = 60.0
"""Seconds that a client may take for each step."""

_log = logging.getLogger(__name__)


class ChunkLinks:
    """The URLs of one server's chunks. Thread-safe. `local`: whether its clients are on this machine. It listens from
    the first URL on, until `stop`."""

    def __init__(self, chunks: ChunkStore, local: bool) -> None:
        self._chunks = chunks
        self._local = local
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._server: _Server | None = None

    def url(self, digest: bytes) -> str:
        """The URL of a chunk, for a day or as long as the chunk is in the store. Raises Unimplemented where clients may
        be on other machines."""
        if not self._local:
            raise Unimplemented(
                "localpachd serves ReadFilesetCDR on the loopback alone: use ReadFileset, which sends the files"
            )
        name, until = digest.hex(), int(time.time()) + _VALID
        return (
            f"http://127.0.0.1:{self._port()}{_PAGE}{name}?until={until}&signature={self._signature(name, str(until))}"
        )

    def chunk(self, target: str) -> bytes | None:
        """The chunk that the path and query of such a URL name; None if they are not valid any more."""
        parts, fields = urlsplit(target), parse_qs(urlsplit(target).query)
        name = parts.path.removeprefix(_PAGE)
        (until,), (given,) = (fields.get(each, [""])[:1] for each in ("until", "signature"))
        signed = hmac.compare_digest(given.encode(), self._signature(name, until).encode())
        return self._chunks.get(bytes.fromhex(name)) if signed and time.time() < int(until) else None

    def stop(self) -> None:
        """Closes the port."""
        with self._lock:
            if self._server is not None:
                self._server.shutdown()
                self._server.server_close()

    def _signature(self, name: str, until: str) -> str:
        return hmac.new(self._key, f"{name} {until}".encode(), hashlib.sha256).hexdigest()

    def _port(self) -> int:
        with self._lock:
            if self._server is None:
                self._server = _Server(self)
                threading.Thread(
                    target=self._server.serve_forever, args=(0.1,), name="chunk-links", daemon=True
                ).start()
            return int(self._server.server_address[1])


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, links: ChunkLinks) -> None:
        self.links = links
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    timeout = _PATIENCE
    server_version, sys_version = "localpachd", ""

    def do_GET(self) -> None:
        try:
            found = self.server.links.chunk(self.path)
        except DataLoss as error:
            self._send(HTTPStatus.NOT_FOUND, f"{error}\n".encode())
            return
        if found is None:
            self._send(HTTPStatus.FORBIDDEN, b"this is not, or no longer, a URL of a chunk: ask ReadFilesetCDR\n")
        else:
            self._send(HTTPStatus.OK, found)

    def log_message(self, format: str, *args: object) -> None:
        _log.debug(format, *args)

    def _send(self, status: HTTPStatus, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
