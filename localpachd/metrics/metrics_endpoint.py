"""The metrics of one server, and the HTTP port that shows them: one page, its access, its TLS. Knows no metric."""

import contextlib
import hmac
import http.server
import ipaddress
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from localpachd.errors import Unavailable
from localpachd.metrics.state_collector import StateCollector, StateSources

PAGE = "/metrics"
_PATIENCE = 10.0
"""Seconds that a client has for its request, and for taking some of the reply."""
_AT_ONCE = 8
"""Connections; Prometheus needs one. A new one ends the oldest."""

_log = logging.getLogger(__name__)

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0)


class CallCounts:
    """The calls of one server. Thread-safe."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ended = Counter(
            "localpachd_calls", "Calls that ended, by method and status code.", ("method", "code"), registry=registry
        )
        self._seconds = Histogram(
            "localpachd_call_seconds",
            "Time of calls, with the time that they waited.",
            ("method",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._under_way = Gauge(
            "localpachd_calls_under_way", "Calls under way, waiting ones too.", ("method",), registry=registry
        )

    def begin(self, method: str) -> float:
        """Counts a call that begins; returns the time for `end`. The caller sees to it that there are few methods."""
        self._under_way.labels(method).inc()
        return time.perf_counter()

    def end(self, method: str, begun: float, code: str) -> None:
        """Counts a call that has ended with the status code of this name."""
        self._seconds.labels(method).observe(time.perf_counter() - begun)
        self._under_way.labels(method).dec()
        self._ended.labels(method, code).inc()


class ServerMetrics:
    """Counts `calls` from the beginning, and shows all metrics at /metrics from `start` to `stop` if it was opened."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.calls = CallCounts(self._registry)
        self.address = ""
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def open(self, host: str, port: int, token: str, context: ssl.SSLContext | None) -> None:
        """Listens, with port 0 on any free one; `address` is the URL then. With a `token` only those are answered who
        send it as `Authorization: Bearer`; without one, on the loopback, only under names of this machine, so that no
        page of the web can read the metrics through a name of its own. With a `context` it speaks TLS. Raises
        Unavailable if the port is taken."""
        name = host.strip("[]")
        try:
            self._server = _Server(name, port, token, self._text, context)
        except OSError as error:
            raise Unavailable(
                f"cannot listen on {host}:{port}: {error.strerror}; choose another --metrics-port (0: any)"
            ) from error
        place = f"[{name}]" if ":" in name else name
        self.address = f"http{'s' * (context is not None)}://{place}:{self._server.server_address[1]}{PAGE}"

    def start(self, sources: StateSources) -> None:
        """Starts to answer with the state of these parts of the server."""
        StateCollector(sources, self._registry)
        if self._server is not None:
            self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="metrics", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Closes the port."""
        if self._server is None:
            return
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def _text(self) -> bytes:
        return bytes(generate_latest(self._registry))


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self, host: str, port: int, token: str, text: Callable[[], bytes], context: ssl.SSLContext | None
    ) -> None:
        self.text, self.context = text, context
        self._host, self._token = host, token.encode()
        self._open: dict[int, socket.socket] = {}
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        # The base class also asks for the name of the host, which can take long.
        http.server.HTTPServer.__base__.server_bind(self)  # type: ignore[union-attr]
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def process_request(self, request: Any, client_address: Any) -> None:
        for oldest in list(self._open.values())[: -(_AT_ONCE - 1)]:
            with contextlib.suppress(OSError):  # it has ended
                oldest.shutdown(socket.SHUT_RDWR)
        self._open[id(request)] = request
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        key = id(request)
        try:
            request.settimeout(_PATIENCE)
            if self.context is not None:  # here, so that no client delays others by its handshake
                request = self.context.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
                self._open[key] = request
                request.do_handshake()
            super().process_request_thread(request, client_address)
        except OSError:  # no TLS, or gone
            self.shutdown_request(request)
        finally:
            self._open.pop(key, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("a request for metrics failed", exc_info=True)

    def refusal(self, authorization: str, host: str) -> tuple[HTTPStatus, str] | None:
        """The status and text for a request that may not read; None for one that may."""
        if self._token:
            kind, _, given = authorization.partition(" ")
            if kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._token):
                return None
            return HTTPStatus.UNAUTHORIZED, "send the token as Authorization: Bearer TOKEN"
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        if _is_loopback(self._host) and not _is_loopback(name.strip("[]")):
            return HTTPStatus.FORBIDDEN, "ask for a name or address of the loopback"
        return None


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    timeout = _PATIENCE
    server_version, sys_version = "localpachd", ""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != PAGE:
            self._refuse(HTTPStatus.NOT_FOUND, f"the metrics are at {PAGE}")
            return
        authorization, host = (self.headers.get_all(name, [""]) for name in ("Authorization", "Host"))
        if len(authorization) > 1 or len(host) > 1:
            self._refuse(HTTPStatus.BAD_REQUEST, "send one Authorization and one Host")
            return
        refusal = self.server.refusal(authorization[0], host[0])
        if refusal is not None:
            self._refuse(*refusal)
        else:
            self._answer()

    def log_message(self, format: str, *args: object) -> None:
        _log.debug(format, *args)

    def _answer(self) -> None:
        try:
            text = self.server.text()
        except Exception as error:  # such as a disk that fails: Prometheus shows the text
            _log.warning("cannot read the metrics: %s", error)
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, f"cannot read the metrics: {error}")
            return
        self._send(HTTPStatus.OK, CONTENT_TYPE_PLAIN_0_0_4, text)

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self._send(status, "text/plain; charset=utf-8", f"{text}\n".encode())

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
