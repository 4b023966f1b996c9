"""The `pps_v2.API` service, assembled from its calls by noun; those about secrets are here.

Values of secrets are never sent back, as in Pachyderm.
"""

import base64
import binascii
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from localpachd.api.messages.spec_reader import SpecReader
from localpachd.api.messages.times import timestamp
from localpachd.api.pfs.transaction_servicer import TransactionalCalls
from localpachd.api.pps.pps_jobs import JobCalls
from localpachd.api.pps.pps_pipelines import PipelineCalls
from localpachd.api.schema.schema import Empty, pps_pb2, task_pb2
from localpachd.errors import PachError, prefixed
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps.pps_service import PpsService
from localpachd.worker.secret_store import Secret, SecretStore

_NO_LOKI = "loki not configured: localpachd runs pipelines without Kubernetes; `pachctl logs` has all their logs"


class PpsServicer(PipelineCalls, JobCalls):
    """Pipelines, jobs, datums, logs, defaults and secrets. Kubernetes, Loki and a queue of tasks do not exist here."""

    def __init__(
        self, pfs: PfsService, pps: PpsService, secrets: SecretStore, specs: SpecReader, write: TransactionalCalls
    ) -> None:
        self._pfs = pfs
        self._pps = pps
        self._secrets = secrets
        self._specs = specs
        self._write = write

    def DeleteAll(self, request: Empty) -> None:
        self._pps.delete_pipelines(None, force=True)
        self._secrets.delete_all()

    def RunPipeline(self, request: pps_pb2.RunPipelineRequest) -> NoReturn:
        # Pachyderm's answer, too; `rerun pipeline` and `run cron` have replaced the call.
        raise PachError("unimplemented")

    def GetKubeEvents(self, request: pps_pb2.LokiRequest) -> NoReturn:
        raise PachError(_NO_LOKI)

    def QueryLoki(self, request: pps_pb2.LokiRequest) -> NoReturn:
        raise PachError(_NO_LOKI)

    def ListTask(self, request: task_pb2.ListTaskRequest) -> Iterator[task_pb2.TaskInfo]:
        return iter(())

    def CreateSecret(self, request: pps_pb2.CreateSecretRequest) -> None:
        secret = _read(request.file)
        # Errors of Kubernetes have no gRPC code, so all of these are UNKNOWN.
        with prefixed("failed to create secret", plain=True):
            self._secrets.create(secret)

    def InspectSecret(self, request: pps_pb2.InspectSecretRequest) -> pps_pb2.SecretInfo:
        with prefixed("failed to get secret", plain=True):
            return _info(self._secrets.get(request.secret.name))

    def ListSecret(self, request: Empty) -> pps_pb2.SecretInfos:
        return pps_pb2.SecretInfos(secret_info=[_info(each) for each in self._secrets.every()])

    def DeleteSecret(self, request: pps_pb2.DeleteSecretRequest) -> None:
        with prefixed("failed to delete secret", plain=True):
            self._secrets.delete(request.secret.name)


def _info(secret: Secret) -> pps_pb2.SecretInfo:
    return pps_pb2.SecretInfo(
        secret=pps_pb2.Secret(name=secret.name), type=secret.type, creation_timestamp=timestamp(secret.created)
    )


def _read(file: bytes) -> Secret:
    """The Kubernetes Secret that a JSON document describes. Errors quote none of its values."""
    try:
        given = json.loads(file)
    except (ValueError, RecursionError):
        raise PachError("failed to unmarshal secret: not JSON") from None
    given = _object(given, "the secret")
    metadata = _object(given.get("metadata"), "metadata")
    labels = _object(metadata.get("labels"), "metadata.labels")
    if labels.get("suite") not in (None, "", "pachyderm"):
        raise PachError(f"invalid suite label set on secret: suite={labels['suite']}")
    name, kind = metadata.get("name") or "", given.get("type") or "Opaque"
    if not isinstance(name, str) or not isinstance(kind, str):
        raise PachError("failed to unmarshal secret: metadata.name and type must be strings")
    return Secret(name, kind, time.time_ns(), _values(given))


def _values(given: Mapping[str, object]) -> dict[str, bytes]:
    values = {}
    for key, value in _object(given.get("data"), "data").items():
        try:
            values[key] = base64.b64decode(value or "", validate=True)
        except (binascii.Error, ValueError, TypeError):
            raise PachError(f"failed to unmarshal secret: data.{key} is not base64") from None
    for key, value in _object(given.get("stringData"), "stringData").items():
        if not isinstance(value, str):
            raise PachError(f"failed to unmarshal secret: stringData.{key} is not a string")
        try:
            values[key] = value.encode()
        except UnicodeEncodeError:  # half of a surrogate
            raise PachError(f"failed to unmarshal secret: stringData.{key} is not valid Unicode") from None
    return values


def _object(value: object, what: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise PachError(f"failed to unmarshal secret: {what} is not an object")
    return value
