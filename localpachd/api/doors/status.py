"""An interceptor that maps the error tree to gRPC status codes. Knows no service by name except to refuse it.

Servicers raise the errors of `localpachd.errors` and never call `context.abort` themselves. A method that a servicer
does not define and a service that is not registered fail with UNIMPLEMENTED and their name.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Never, NoReturn, TypeVar
from urllib.parse import quote

import grpc

from localpachd import errors
from localpachd.api.calls.handlers import is_parked, method_handler, replaced
from localpachd.api.doors import machine_errors
from localpachd.api.schema.schema import rpc_pb2

_LONGEST_TEXT = 3000
"""Bytes of the text of an error, escaped for a trailer. An Unavailable one is sent twice more, in its details."""

log = logging.getLogger(__name__)

ServicerContext = grpc.ServicerContext
Request = TypeVar("Request")
Reply = TypeVar("Reply")
Given = TypeVar("Given")
"""A request, or the stream of requests of a call."""

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
_NO_AUTH = "the auth service is not activated"


# Single calls whose refusal clients recognise by its text, or that have a substitute.
_REFUSALS = {
    "pfs_v2.API/ActivateAuth": _NO_AUTH,
    "pps_v2.API/ActivateAuth": _NO_AUTH,
    "storage.Fileset/ReadFilesetCDR": "localpachd does not serve storage.Fileset/ReadFilesetCDR: its chunks have no "
    "URLs. Use ReadFileset, which sends the files themselves",
}


def status(error: Exception, method: str) -> tuple[grpc.StatusCode, str]:
    """The status code and text for `error`, raised by `method` ("service/Method")."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code, str(error)
    if isinstance(error, NotImplementedError):
        return grpc.StatusCode.UNIMPLEMENTED, f"localpachd does not serve {method}"
    of_machine = machine_errors.machine_failure(error)
    if of_machine is not None:
        log.warning("%s failed: %s", method, error)
        return of_machine
    log.error("%s failed", method, exc_info=error)
    first_line = (str(error).splitlines() or [""])[0]
    text = f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__
    return grpc.StatusCode.INTERNAL, f"internal error in {method}: {text} (the server's log has the details)"


class StatusInterceptor(grpc.ServerInterceptor):
    """Wraps every handler so that its exceptions become statuses; refuses unknown methods by name."""

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], "grpc.RpcMethodHandler[Request, Reply] | None"],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Request, Reply] | None":
        method = handler_call_details.method.lstrip("/")
        found = continuation(handler_call_details)
        if found is None:
            return _refusal(_unknown(method))
        if is_parked(found):  # it maps its errors itself
            return found
        return replaced(found, _guarded(found, method))


def _guarded(found: "grpc.RpcMethodHandler[Request, Reply]", method: str) -> Callable[[Never, ServicerContext], object]:
    if found.unary_unary is not None:
        return _single(found.unary_unary, method)
    if found.stream_unary is not None:
        return _single(found.stream_unary, method)
    if found.unary_stream is not None:
        return _streaming(found.unary_stream, method)
    assert found.stream_stream is not None
    return _streaming(found.stream_stream, method)


def _single(inner: Callable[[Given, ServicerContext], Reply], method: str) -> Callable[[Given, ServicerContext], Reply]:
    def call(request: Given, context: ServicerContext) -> Reply:
        try:
            return inner(request, context)
        except Exception as error:
            _abort(context, error, method)

    return call


def _streaming(
    inner: Callable[[Given, ServicerContext], Iterator[Reply]], method: str
) -> Callable[[Given, ServicerContext], Iterator[Reply]]:
    def call(request: Given, context: ServicerContext) -> Iterator[Reply]:
        try:
            yield from inner(request, context)
        except Exception as error:
            _abort(context, error, method)

    return call


def _abort(context: ServicerContext, error: Exception, method: str) -> NoReturn:
    context.abort(*_prepared(context, error, method))
    raise AssertionError("abort returns never")


def conclude(context: ServicerContext, error: Exception, method: str) -> None:
    """Gives a call that ends by itself the status of an error."""
    code, text = _prepared(context, error, method)
    context.set_code(code)
    context.set_details(text)


def _prepared(context: ServicerContext, error: Exception, method: str) -> tuple[grpc.StatusCode, str]:
    """The status code and text of an error, whose further details are put into the call's trailer."""
    if not context.is_active():
        # The client has gone: nobody reads the status, and the exception that this caused is not a failure.
        return grpc.StatusCode.CANCELLED, "the client has gone"
    code, text = status(error, method)
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
    if service in _AUTH_SERVICES:
        return _NO_AUTH
    return _REFUSALS.get(method, f"localpachd does not serve {method}")


def _refusal(text: str) -> "grpc.RpcMethodHandler[Request, Reply]":
    """A handler that reads nothing and fails with UNIMPLEMENTED."""

    def refuse(request: object, context: ServicerContext) -> NoReturn:
        context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
        raise AssertionError("abort returns never")

    return method_handler(refuse, (True, True), None, None)
