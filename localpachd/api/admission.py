"""An interceptor that limits the streams that are open at once, so that threads are left for all other calls.

A stream keeps its thread for as long as its client takes to send or to read. Knows no service by name.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc

from localpachd.api.handlers import is_parked, replaced
from localpachd.errors import TooMany


class StreamLimit(grpc.ServerInterceptor):
    """Refuses a stream, of requests or of replies, while `limit` others are open. Belongs below the interceptor that
    maps errors."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._free = threading.Semaphore(limit)

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], "grpc.RpcMethodHandler[Any, Any] | None"],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Any, Any] | None":
        found = continuation(handler_call_details)
        if found is None or is_parked(found):
            return found
        if found.response_streaming:
            return replaced(found, self._replies(found.unary_stream or found.stream_stream))
        if found.request_streaming:
            return replaced(found, self._requests(found.stream_unary))
        return found

    def _replies(self, inner: Any) -> Callable[..., Iterator[Any]]:
        def call(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            with self._room():
                yield from inner(request, context)

        return call

    def _requests(self, inner: Any) -> Callable[..., Any]:
        def call(requests: Any, context: grpc.ServicerContext) -> Any:
            with self._room():
                return inner(requests, context)

        return call

    @contextmanager
    def _room(self) -> Iterator[None]:
        if not self._free.acquire(blocking=False):
            raise TooMany(f"{self._limit} uploads, downloads and listings are under way: end some, or try again later")
        try:
            yield
        finally:
            self._free.release()
