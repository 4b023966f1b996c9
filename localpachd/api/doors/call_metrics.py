"""An interceptor that counts and times all calls. Belongs before all others, to see their refusals too.

Knows no service by name except to give all unknown methods one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import grpc

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.calls.handlers import AnyHandler, CallInterceptor, enclosed, is_parked, parked
from localpachd.api.schema.schema import SERVICES
from localpachd.metrics.metrics_endpoint import CallCounts

_HEALTH = frozenset(f"grpc.health.v1.Health/{call}" for call in ("Check", "Watch"))
_KNOWN = _HEALTH | {f"{service}/{call.name}" for service, found in SERVICES.items() for call in found.methods}
_UNKNOWN = "unknown"
"""The label of methods that Pachyderm does not have: clients could otherwise fill the memory with names."""


class CallMetrics(CallInterceptor):
    """Counts calls by method and status code."""

    def __init__(self, calls: CallCounts) -> None:
        self._calls = calls

    def around(self, handler: AnyHandler, method: str) -> AnyHandler:
        name = method if method in _KNOWN else _UNKNOWN
        if is_parked(handler):
            return parked(handler, _parked(handler.unary_stream, self._calls, name))
        return enclosed(handler, partial(_counted, self._calls, name))


@contextmanager
def _counted(calls: CallCounts, method: str, context: CallContext) -> Iterator[None]:
    begun = calls.begin(method)
    otherwise = grpc.StatusCode.UNKNOWN
    try:
        yield
        otherwise = grpc.StatusCode.OK
    finally:
        calls.end(method, begun, _code(context, otherwise))


def _parked(inner: Any, calls: CallCounts, method: str) -> Callable[..., object]:
    def call(request: object, context: CallContext, send: Callable[[object], None]) -> object:
        begun = calls.begin(method)
        code = grpc.StatusCode.CANCELLED

        def sending(reply: object) -> None:
            nonlocal code
            if reply is None:
                code = _status(context) or grpc.StatusCode.OK
            send(reply)

        def ended() -> None:
            calls.end(method, begun, code.name)

        if not context.add_callback(ended):
            ended()
        return inner(request, context, sending)

    return call


def _code(context: CallContext, otherwise: grpc.StatusCode) -> str:
    """The name of the status of a call that ends: `otherwise` where no other is set. Deadlines are cancellations to a
    server."""
    if not context.is_active():
        return grpc.StatusCode.CANCELLED.name
    return (_status(context) or otherwise).name


def _status(context: Any) -> grpc.StatusCode | None:
    found: grpc.StatusCode | None = context.code()
    return found
