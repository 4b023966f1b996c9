"""Small gRPC servers, each on its own loopback port and for one caller: a batched process, or a spout.

Pachyderm recognises a spout by the sidecar that it calls (`PPS_PIPELINE_NAME` in the sidecar's environment); so do we.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc

from localpachd.api.calls.grpc_limits import OPTIONS
from localpachd.api.calls.handlers import add_service
from localpachd.api.doors.status import StatusInterceptor
from localpachd.api.messages.times import timestamp
from localpachd.api.pachyderm_version import V2_7, PachydermVersion
from localpachd.api.schema.schema import Empty, pps_pb2, worker_pb2
from localpachd.pfs.pfs_entities import Branch
from localpachd.pfs.pfs_service import PfsService
from localpachd.worker.environment import POD_NAME

NextDatumHandler = Callable[[str], list[str] | None]

_CALLS_OF_SIDECAR = 32
"""Calls that a sidecar answers at a time."""
_CALLS_OF_BATCH = 4
"""A process waits in one call at a time. The others serve a restarted process while the call of its predecessor has not
yet noticed that its client is dead."""


class LoopbackServers:
    """The running servers, by port. Thread-safe. Each answers `calls` calls at a time, in threads called `name`.
    `guards` are interceptors that may refuse a call before any other sees it; `version` is the version as which they
    answer."""

    def __init__(
        self,
        calls: int,
        name: str,
        guards: Sequence[grpc.ServerInterceptor] = (),
        version: PachydermVersion = V2_7,
    ) -> None:
        self._interceptors = [*guards, StatusInterceptor(version)]
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
        version: PachydermVersion = V2_7,
    ) -> None:
        super().__init__(_CALLS_OF_SIDECAR, "spout-call", guards, version)
        self._pfs = pfs
        self._register = register

    def open(self, output: Branch) -> int:
        """Serves the API to the spout with this output on a new loopback port and returns the port."""
        return self.serve(lambda server: self._register(server, self._pfs.for_spout(output)))


class WorkerServicer:
    """The calls of `pachyderm_client.worker.Worker` that user code may make."""

    def __init__(self, handler: NextDatumHandler) -> None:
        self._handler = handler
        self._given: tuple[int, dict[str, str]] | None = None

    def NextDatum(self, request: worker_pb2.NextDatumRequest) -> worker_pb2.NextDatumResponse:
        self._given = None
        env = self._handler(request.error) or ()
        if env:
            self._given = time.time_ns(), {name: value for name, _, value in (each.partition("=") for each in env)}
        return worker_pb2.NextDatumResponse(env=env)

    def Status(self, request: Empty) -> pps_pb2.WorkerStatus:
        if self._given is None:
            return pps_pb2.WorkerStatus()
        started, env = self._given
        return pps_pb2.WorkerStatus(
            worker_id=env.get(POD_NAME, ""),
            job_id=env.get("PACH_JOB_ID", ""),
            datum_status=pps_pb2.DatumStatus(started=timestamp(started)),
        )


class GrpcBatchServer(LoopbackServers):
    """The worker room's BatchServer over gRPC. Thread-safe."""

    def __init__(self) -> None:
        super().__init__(_CALLS_OF_BATCH, "next-datum")

    def open(self, handler: NextDatumHandler) -> int:
        """Serves NextDatum on a new loopback port and returns the port; see `worker.tasks.BatchServer`."""
        return self.serve(lambda server: add_service(server, "pachyderm.worker.Worker", WorkerServicer(handler)))
