"""An interceptor that counts and times all calls. Belongs before all others, to see their refusals too.

Knows no service by name except to give all unknown methods one.
"""

from collections.abc import Callable, Iterator
from typing import Any

import grpc

from localpachd.api.calls.handlers import is_parked, parked, replaced
from localpachd.api.schema.schema import SERVICES
from localpachd.metrics.call_counts import CallCounts, MethodCounts

_HEALTH = frozenset(f"grpc.health.v1.Health/{call}" for call in ("Check", "Watch"))
_KNOWN = _HEALTH | {f"{service}/{call.name}" for service, found in SERVICES.items() for call in found.methods}
_UNKNOWN = "unknown"
"""The label of methods that Pachyderm does not have: clients could otherwise fill the memory with names."""


class CallMetrics(grpc.ServerInterceptor):
    """Counts calls by method and status code."""

    def __init__(self, calls: CallCounts) -> None:
        self._calls = calls

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], "grpc.RpcMethodHandler[Any, Any] | None"],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Any, Any] | None":
        found = continuation(handler_call_details)
        if found is None:
            return found
        name = handler_call_details.method.lstrip("/")
        method = self._calls.of(name if name in _KNOWN else _UNKNOWN)
        if is_parked(found):
            return parked(found, _parked(found.unary_stream, method))
        if found.response_streaming:
            return replaced(found, _stream(found.unary_stream or found.stream_stream, method))
        return replaced(found, _single(found.unary_unary or found.stream_unary, method))


def _single(inner: Any, method: MethodCounts) -> Callable[..., object]:
    def call(request: object, context: grpc.ServicerContext) -> object:
        begun = method.begin()
        try:
            reply = inner(request, context)
        except BaseException:
            method.end(begun, _code(context, grpc.StatusCode.UNKNOWN))
            raise
        method.end(begun, _code(context, grpc.StatusCode.OK))
        return reply

    return call


def _stream(inner: Any, method: MethodCounts) -> Callable[..., Iterator[object]]:
    def call(request: object, context: grpc.ServicerContext) -> Iterator[object]:
        begun = method.begin()
        otherwise = grpc.StatusCode.UNKNOWN
        try:
            yield from inner(request, context)
            otherwise = grpc.StatusCode.OK
        finally:
            method.end(begun, _code(context, otherwise))

    return call


def _parked(inner: Any, method: MethodCounts) -> Callable[..., object]:
    def call(request: object, context: grpc.ServicerContext, send: Callable[[object], None]) -> object:
        begun = method.begin()
        code = grpc.StatusCode.CANCELLED

        def sending(reply: object) -> None:
            nonlocal code
            if reply is None:
                code = _status(context) or grpc.StatusCode.OK
            send(reply)

        def ended() -> None:
            method.end(begun, code.name)

        if not context.add_callback(ended):
            ended()
        return inner(request, context, sending)

    return call


def _code(context: grpc.ServicerContext, otherwise: grpc.StatusCode) -> str:
    """The name of the status of a call that ends: `otherwise` where no other is set. Deadlines are cancellations to a
    server."""
    if not context.is_active():
        return grpc.StatusCode.CANCELLED.name
    return (_status(context) or otherwise).name


def _status(context: Any) -> grpc.StatusCode | None:
    found: grpc.StatusCode | None = context.code()
    return found
