"""The service that batched processes call: a small gRPC server on a loopback port for each. Knows no pipeline."""

import time
from collections.abc import Callable

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.calls.handlers import add_service
from localpachd.api.messages.times import timestamp
from localpachd.api.pps.loopback_servers import LoopbackServers
from localpachd.api.schema.schema import Empty, pps_pb2, worker_pb2
from localpachd.worker.environment import POD_NAME

NextDatumHandler = Callable[[str], list[str] | None]

_CALLS_AT_ONCE = 4
"""A process waits in one call at a time. The others serve a restarted process while the call of its predecessor has not
yet noticed that its client is dead."""


class WorkerServicer:
    """The calls of `pachyderm_client.worker.Worker` that user code may make."""

    def __init__(self, handler: NextDatumHandler) -> None:
        self._handler = handler
        self._given: tuple[int, dict[str, str]] | None = None

    def NextDatum(self, request: worker_pb2.NextDatumRequest, context: CallContext) -> worker_pb2.NextDatumResponse:
        self._given = None
        env = self._handler(request.error) or ()
        if env:
            self._given = time.time_ns(), {name: value for name, _, value in (each.partition("=") for each in env)}
        return worker_pb2.NextDatumResponse(env=env)

    def Status(self, request: Empty, context: CallContext) -> pps_pb2.WorkerStatus:
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
        super().__init__(_CALLS_AT_ONCE, "next-datum")

    def open(self, handler: NextDatumHandler) -> int:
        """Serves NextDatum on a new loopback port and returns the port; see `worker.tasks.BatchServer`."""
        return self.serve(lambda server: add_service(server, "pachyderm.worker.Worker", WorkerServicer(handler)))
