"""Small gRPC servers, each on its own loopback port and for one caller. Knows no service."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc

from localpachd.api.calls.grpc_limits import OPTIONS
from localpachd.api.doors.status import StatusInterceptor


class LoopbackServers:
    """The running servers, by port. Thread-safe. Each answers `calls` calls at a time, in threads called `name`.
    `guards` are interceptors that may refuse a call before any other sees it."""

    def __init__(self, calls: int, name: str, guards: Sequence[grpc.ServerInterceptor] = ()) -> None:
        self._interceptors = [*guards, StatusInterceptor()]
        self._calls = calls
        self._name = name
        self._lock = threading.Lock()
        self._open: dict[int, tuple[grpc.Server, ThreadPoolExecutor]] = {}

    def serve(self, register: Callable[[grpc.Server], None]) -> int:
        """Serves the services that `register` adds to a server on a new loopback port; returns the port."""
        pool = ThreadPoolExecutor(self._calls, thread_name_prefix=self._name)
        server = grpc.server(
            pool, options=OPTIONS, interceptors=self._interceptors, compression=grpc.Compression.NoCompression
        )
        register(server)
        port = int(server.add_insecure_port("127.0.0.1:0"))
        server.start()
        with self._lock:
            self._open[port] = server, pool
        return port

    def close(self, port: int) -> None:
        """Stops serving a port that `serve` returned; does not wait for calls in progress."""
        with self._lock:
            server, pool = self._open.pop(port)
        server.stop(grace=None)
        pool.shutdown(wait=False)
