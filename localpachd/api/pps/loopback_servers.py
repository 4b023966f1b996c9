"""Small gRPC servers, each on its own loopback port and for one caller; those of spouts are their sidecars.

Pachyderm recognises a spout by the sidecar that it calls (`PPS_PIPELINE_NAME` in the sidecar's environment); so do we.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc

from localpachd.api.calls.grpc_limits import OPTIONS
from localpachd.api.doors.status import StatusInterceptor
from localpachd.pfs.pfs_entities import Branch
from localpachd.pfs.pfs_service import PfsService

_CALLS_AT_ONCE = 32
"""Calls that a sidecar answers at a time."""


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


class GrpcSidecars(LoopbackServers):
    """The pps room's Sidecars over gRPC: each serves the whole API, and its spout may commit to its output. `register`
    adds the services to a server, backed by the file system that it is given, when a sidecar opens."""

    def __init__(
        self,
        pfs: PfsService,
        register: Callable[[grpc.Server, PfsService], None],
        guards: Sequence[grpc.ServerInterceptor] = (),
    ) -> None:
        super().__init__(_CALLS_AT_ONCE, "spout-call", guards)
        self._pfs = pfs
        self._register = register

    def open(self, output: Branch) -> int:
        """Serves the API to the spout with this output on a new loopback port and returns the port."""
        return self.serve(lambda server: self._register(server, self._pfs.for_spout(output)))
