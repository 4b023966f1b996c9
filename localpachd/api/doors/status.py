"""An interceptor that maps the error tree to gRPC status codes. Knows no service by name except to refuse it.

Servicers raise the errors of `localpachd.errors` and never call `context.abort` themselves. A method that a servicer
does not define and a service that is not registered fail with UNIMPLEMENTED and their name.
"""

import errno
import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from urllib.parse import quote

import grpc

from localpachd import errors
from localpachd.api.calls.cancellation import CallContext
from localpachd.api.calls.handlers import AnyHandler, enclosed, is_parked, refusal
from localpachd.api.doors import later_refusals
from localpachd.api.pachyderm_version import V2_7, PachydermVersion
from localpachd.api.schema.schema import rpc_pb2
from localpachd.sqlite import error_kind

_LONGEST_TEXT = 3000
"""Bytes of the text of an error, escaped for a trailer. An Unavailable one is sent twice more, in its details."""

log = logging.getLogger(__name__)

_CODES: tuple[tuple[type[errors.PachError], grpc.StatusCode], ...] = (
    (errors.InvalidArgument, grpc.StatusCode.INVALID_ARGUMENT),
    (errors.NotFound, grpc.StatusCode.NOT_FOUND),
    (errors.AlreadyExists, grpc.StatusCode.ALREADY_EXISTS),
    (errors.FailedPrecondition, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.Unavailable, grpc.StatusCode.UNAVAILABLE),
    (errors.NoSpace, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.OverQuota, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.DataLoss, grpc.StatusCode.DATA_LOSS),
    (errors.TooMany, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.Unimplemented, grpc.StatusCode.UNIMPLEMENTED),
    (errors.PachdCrash, grpc.StatusCode.INTERNAL),
    (errors.PachError, grpc.StatusCode.UNKNOWN),
)

# Service names of Pachyderm 1.x, whose clients need a better answer than an unknown method.
_OLD_SERVICES = frozenset(
    f"{package}.API"
    for package in ("admin", "auth", "debug", "enterprise", "identity", "pfs", "pps", "transaction", "versionpb")
)
_OLD_CLIENT = (
    "this server is running pachyderm 2.x, but your client appears to be an older version - please upgrade: "
    "pachctl 2.7 or a 2.x client library can talk to it"
)

# Clients recognise a server without authentication by this text.
_AUTH_SERVICES = frozenset(("auth_v2.API", "enterprise_v2.API", "identity_v2.API", "license_v2.API"))
_AUTH_CALLS = frozenset(("pfs_v2.API/ActivateAuth", "pps_v2.API/ActivateAuth"))
_NO_AUTH = "the auth service is not activated"

_EXHAUSTED, _PRECONDITION = grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.FAILED_PRECONDITION
_SYSTEM = {
    errno.ENOSPC: (_EXHAUSTED, "no space left on the server's disk: free some"),
    errno.EDQUOT: (_EXHAUSTED, "the server's quota of its disk is used up: free some of it"),
    errno.EMFILE: (_EXHAUSTED, "the server has too many open files: try again later, or raise its limit (ulimit -n)"),
    errno.ENFILE: (_EXHAUSTED, "the server's machine has too many open files: try again later"),
    errno.ENOMEM: (_EXHAUSTED, "the server's machine has no memory left: try again later"),
    errno.EAGAIN: (_EXHAUSTED, "the server's machine can start no more threads or processes: try again later"),
    errno.EACCES: (_PRECONDITION, "the server may not access one of its files: give it the right"),
    errno.EPERM: (_PRECONDITION, "the server may not change one of its files: give it the right, or see lsattr"),
    errno.EROFS: (_PRECONDITION, "the server's disk can only be read: mount it for writing"),
}
_DATABASE = {
    sqlite3.SQLITE_FULL: _SYSTEM[errno.ENOSPC],
    sqlite3.SQLITE_CANTOPEN: (_EXHAUSTED, "the server cannot open its database: it may have too many open files"),
    sqlite3.SQLITE_NOMEM: _SYSTEM[errno.ENOMEM],
    sqlite3.SQLITE_PERM: _SYSTEM[errno.EACCES],
    sqlite3.SQLITE_READONLY: (_PRECONDITION, "the server may not write its database: see its rights and its disk"),
}


def machine_failure(error: Exception) -> tuple[grpc.StatusCode, str] | None:
    """The status code and text of a failure of the machine; None for any other error."""
    if isinstance(error, OSError):
        known = _SYSTEM.get(error.errno or 0)
        if known is not None and isinstance(error.filename, str) and error.filename:
            return known[0], f"{known[1]} ({error.filename})"
        return known
    if isinstance(error, sqlite3.OperationalError):
        return _DATABASE.get(error_kind(error))
    return None


def status(error: Exception, method: str) -> tuple[grpc.StatusCode, str]:
    """The status code and text for `error`, raised by `method` ("service/Method")."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code, str(error)
    if isinstance(error, NotImplementedError):
        return grpc.StatusCode.UNIMPLEMENTED, f"localpachd does not serve {method}"
    of_machine = machine_failure(error)
    if of_machine is not None:
        log.warning("%s failed: %s", method, error)
        return of_machine
    log.error("%s failed", method, exc_info=error)
    first_line = (str(error).splitlines() or [""])[0]
    text = f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__
    return grpc.StatusCode.INTERNAL, f"internal error in {method}: {text} (the server's log has the details)"


class StatusInterceptor(grpc.ServerInterceptor):
    """Wraps every handler so that its exceptions become statuses, as in this version; refuses unknown methods by
    name."""

    def __init__(self, version: PachydermVersion = V2_7) -> None:
        self._version = version

    def intercept_service(
        self,
        continuation: "Callable[[grpc.HandlerCallDetails], AnyHandler | None]",
        handler_call_details: grpc.HandlerCallDetails,
    ) -> AnyHandler:
        method = handler_call_details.method.lstrip("/")
        found = continuation(handler_call_details)
        if found is None:
            return refusal(grpc.StatusCode.UNIMPLEMENTED, _unknown(method))
        if is_parked(found):  # it maps its errors itself
            return found
        return enclosed(found, partial(_mapping_errors, method, self._version))


@contextmanager
def _mapping_errors(method: str, version: PachydermVersion, context: CallContext) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        context.abort(*_prepared(context, error, method, version))


def conclude(context: CallContext, error: Exception, method: str, version: PachydermVersion) -> None:
    """Gives a call that ends by itself the status of an error."""
    code, text = _prepared(context, error, method, version)
    context.set_code(code)
    context.set_details(text)


def _prepared(
    context: CallContext, error: Exception, method: str, version: PachydermVersion
) -> tuple[grpc.StatusCode, str]:
    """The status code and text of an error, whose further details are put into the call's trailer."""
    if not context.is_active():
        # The client has gone: nobody reads the status, and the exception that this caused is not a failure.
        return grpc.StatusCode.CANCELLED, "the client has gone"
    code, text = status(error, method)
    if version > V2_7 and isinstance(error, errors.PachError):
        code, text = later_refusals.since_2_12(method, code, text)
    text = _sendable(text)
    if isinstance(error, errors.Unavailable) and error.resource is not None:
        context.set_trailing_metadata((("grpc-status-details-bin", _details(code, text, error.resource)),))
    return code, text


def _sendable(text: str) -> str:
    """A text that fits into the trailer of a reply, whose limit is 8 KiB of escaped bytes: of one that quotes a long
    request, the beginning and the end. Clients would otherwise see only that there was too much of it. Halves of
    surrogates, which JSON may hold and UTF-8 may not, are replaced."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    while len(quote(text)) > _LONGEST_TEXT:
        kept = max(len(text) // 3, 1)
        text = f"{text[:kept]} … {text[-kept:]}"
    return text


def _details(code: grpc.StatusCode, text: str, resource: tuple[str, str, str]) -> bytes:
    """The full status, with the resource that it is about, as it is sent beside its code and text."""
    kind, name, description = resource
    info = rpc_pb2.ResourceInfo(resource_type=kind, resource_name=name, description=description)
    whole = rpc_pb2.Status(code=code.value[0], message=text)
    whole.details.add(type_url=f"type.googleapis.com/{info.DESCRIPTOR.full_name}", value=info.SerializeToString())
    encoded: bytes = whole.SerializeToString()
    return encoded


def _unknown(method: str) -> str:
    service = method.partition("/")[0]
    if service in _OLD_SERVICES:
        return _OLD_CLIENT
    if service in _AUTH_SERVICES or method in _AUTH_CALLS:
        return _NO_AUTH
    return f"localpachd does not serve {method}"
