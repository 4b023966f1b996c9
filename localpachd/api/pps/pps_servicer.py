"""The `pps_v2.API` service, assembled from its calls by noun."""

import grpc

from localpachd.api.messages.spec_reader import SpecReader
from localpachd.api.pfs.transaction_servicer import TransactionalCalls
from localpachd.api.pps.pps_datums import DatumCalls
from localpachd.api.pps.pps_defaults import DefaultsCalls
from localpachd.api.pps.pps_jobs import JobCalls
from localpachd.api.pps.pps_pipelines import PipelineCalls
from localpachd.api.pps.pps_secrets import SecretCalls
from localpachd.api.pps.pps_specs import SpecCalls
from localpachd.api.pps.pps_unavailable import UnavailableCalls
from localpachd.api.schema.schema import Empty
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps.pps_service import PpsService
from localpachd.worker.secret_store import SecretStore


class PpsServicer(SpecCalls, DefaultsCalls, PipelineCalls, SecretCalls, JobCalls, DatumCalls, UnavailableCalls):
    """Pipelines, jobs, datums, logs, defaults and secrets."""

    def __init__(
        self, pfs: PfsService, pps: PpsService, secrets: SecretStore, specs: SpecReader, write: TransactionalCalls
    ) -> None:
        self._pfs = pfs
        self._pps = pps
        self._secrets = secrets
        self._specs = specs
        self._write = write

    def DeleteAll(self, request: Empty, context: grpc.ServicerContext) -> Empty:
        self._pps.delete_pipelines(None, force=True)
        self._secrets.delete_all()
        return Empty()
