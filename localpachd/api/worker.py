"""What batched processes call: one small gRPC server on a loopback port for each. Knows no pipeline."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from localpachd.api.limits import OPTIONS
from localpachd.api.schema import pps_pb2, worker_pb2
from localpachd.api.serving import serve
from localpachd.api.status import StatusInterceptor
from localpachd.api.times import timestamp

Handler = Callable[[str], list[str] | None]


class WorkerServicer:
    """`pachyderm.worker.Worker`, as far as user code may call it."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._given: tuple[int, dict[str, str]] | None = None

    def NextDatum(self, request: Any, context: Any) -> Any:
        self._given = None
        env = self._handler(request.error) or ()
        if env:
            self._given = time.time_ns(), {name: value for name, _, value in (each.partition("=") for each in env)}
        return worker_pb2.NextDatumResponse(env=env)

    def Status(self, request: Any, context: Any) -> Any:
        if self._given is None:
            return pps_pb2.WorkerStatus()
        started, env = self._given
        return pps_pb2.WorkerStatus(
            worker_id=env.get("PPS_POD_NAME", ""),
            job_id=env.get("PACH_JOB_ID", ""),
            datum_status=pps_pb2.DatumStatus(started=timestamp(started)),
        )


class GrpcBatchServer:
    """The worker room's BatchServer over gRPC. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, tuple[grpc.Server, ThreadPoolExecutor]] = {}

    def open(self, handler: Handler) -> int:
        """Serves NextDatum on a fresh loopback port and returns it; see `worker.tasks.BatchServer`."""
        # A process waits in one call at a time. The spare threads are for one that was restarted before the call of the
        # process before it has noticed that its caller is dead.
        pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="next-datum")
        server = grpc.server(pool, options=OPTIONS, interceptors=(StatusInterceptor(),))
        serve(server, "pachyderm.worker.Worker", WorkerServicer(handler))
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
