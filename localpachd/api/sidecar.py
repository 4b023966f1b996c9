"""A spout's own door to the server: the whole API on a loopback port of its own, where it may commit to its output.

Pachyderm knows a spout by the sidecar that it calls (`PPS_PIPELINE_NAME` in the sidecar's environment); so do we.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc

from localpachd.api.limits import OPTIONS
from localpachd.api.status import StatusInterceptor
from localpachd.pfs.service import Pfs
from localpachd.pfs.values import Branch

_CALLS_AT_ONCE = 32


class GrpcSidecars:
    """The pps room's Sidecars over gRPC. Thread-safe. `register` is named before anything is opened: it adds the
    services of the API to a server, with the file system that it is given behind them."""

    def __init__(self, pfs: Pfs) -> None:
        self._pfs = pfs
        self.register: Callable[[grpc.Server, Pfs], None] | None = None
        self._lock = threading.Lock()
        self._open: dict[int, tuple[grpc.Server, ThreadPoolExecutor]] = {}

    def open(self, output: Branch) -> int:
        """Serves the API to the spout with this output on a fresh loopback port and returns it."""
        assert self.register is not None
        pool = ThreadPoolExecutor(_CALLS_AT_ONCE, thread_name_prefix="spout-call")
        server = grpc.server(
            pool, options=OPTIONS, interceptors=(StatusInterceptor(),), compression=grpc.Compression.NoCompression
        )
        self.register(server, self._pfs.for_spout(output))
        port = int(server.add_insecure_port("127.0.0.1:0"))
        server.start()
        with self._lock:
            self._open[port] = server, pool
        return port

    def close(self, port: int) -> None:
        """Stops serving a port that `open` returned, without waiting for calls in progress."""
        with self._lock:
            server, pool = self._open.pop(port)
        server.stop(grace=None)
        pool.shutdown(wait=False)
