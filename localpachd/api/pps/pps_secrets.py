"""The calls about secrets. Values of secrets are never sent back, as in Pachyderm."""

import base64
import binascii
import json
import time
from collections.abc import Mapping
from typing import Any

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.messages.times import timestamp
from localpachd.api.schema.schema import Empty, pps_pb2
from localpachd.errors import PachError
from localpachd.worker.secret_store import Secret, SecretStore


class SecretCalls:
    """Secrets of `pps_v2.API`."""

    _secrets: SecretStore

    def CreateSecret(self, request: pps_pb2.CreateSecretRequest, context: CallContext) -> Empty:
        secret = _read(request.file)
        try:
            self._secrets.create(secret)
        except PachError as error:
            raise _about("create secret", error) from None
        return Empty()

    def InspectSecret(self, request: pps_pb2.InspectSecretRequest, context: CallContext) -> pps_pb2.SecretInfo:
        try:
            return _info(self._secrets.get(request.secret.name))
        except PachError as error:
            raise _about("get secret", error) from None

    def ListSecret(self, request: Empty, context: CallContext) -> pps_pb2.SecretInfos:
        return pps_pb2.SecretInfos(secret_info=[_info(each) for each in self._secrets.every()])

    def DeleteSecret(self, request: pps_pb2.DeleteSecretRequest, context: CallContext) -> Empty:
        try:
            self._secrets.delete(request.secret.name)
        except PachError as error:
            raise _about("delete secret", error) from None
        return Empty()


def _about(what: str, error: PachError) -> PachError:
    # Errors of Kubernetes have no gRPC code, so all of these are UNKNOWN.
    return PachError(f"failed to {what}: {error}")


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
