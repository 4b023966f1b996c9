"""The `pps_v2.API` service, assembled from its calls by noun."""

from collections.abc import Iterator
from typing import NoReturn

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.messages.spec_reader import SpecReader
from localpachd.api.pfs.transaction_servicer import TransactionalCalls
from localpachd.api.pps.pps_jobs import JobCalls
from localpachd.api.pps.pps_pipelines import PipelineCalls
from localpachd.api.pps.pps_secrets import SecretCalls
from localpachd.api.schema.schema import Empty, pps_pb2, task_pb2
from localpachd.errors import PachError
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps.pps_service import PpsService
from localpachd.worker.secret_store import SecretStore

_NO_LOKI = "loki not configured: localpachd runs pipelines without Kubernetes; `pachctl logs` has all their logs"


class PpsServicer(PipelineCalls, SecretCalls, JobCalls):
    """Pipelines, jobs, datums, logs, defaults and secrets. Kubernetes, Loki and a queue of tasks do not exist here."""

    def __init__(
        self, pfs: PfsService, pps: PpsService, secrets: SecretStore, specs: SpecReader, write: TransactionalCalls
    ) -> None:
        self._pfs = pfs
        self._pps = pps
        self._secrets = secrets
        self._specs = specs
        self._write = write

    def DeleteAll(self, request: Empty, context: CallContext) -> Empty:
        self._pps.delete_pipelines(None, force=True)
        self._secrets.delete_all()
        return Empty()

    def RunPipeline(self, request: pps_pb2.RunPipelineRequest, context: CallContext) -> NoReturn:
        # Pachyderm's answer, too; `rerun pipeline` and `run cron` have replaced the call.
        raise PachError("unimplemented")

    def GetKubeEvents(self, request: pps_pb2.LokiRequest, context: CallContext) -> NoReturn:
        raise PachError(_NO_LOKI)

    def QueryLoki(self, request: pps_pb2.LokiRequest, context: CallContext) -> NoReturn:
        raise PachError(_NO_LOKI)

    def ListTask(self, request: task_pb2.ListTaskRequest, context: CallContext) -> Iterator[task_pb2.TaskInfo]:
        return iter(())
