"""An interceptor that limits the streams that are open at once, so that threads are left for all other calls, and the
time in which a client may leave one unread.

A stream keeps its thread, and often a snapshot of the database, whose log of changes cannot shrink meanwhile. Knows no
service by name.
"""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.calls.handlers import AnyHandler, CallInterceptor, enclosed, is_parked, replaced
from localpachd.errors import TooMany

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Unread:
    """A stream with a reply that its client has not taken since a time (`time.monotonic`)."""

    method: str
    context: CallContext
    since: float


class StreamLimit(CallInterceptor):
    """Refuses a stream, of requests or of replies, while `limit` others are open. Belongs below the interceptor that
    maps errors. `end_idle`, to be called now and then, ends streams of replies that nobody has read for `idle` seconds.
    """

    def __init__(self, limit: int, idle: float) -> None:
        self._limit = limit
        self._idle = idle
        self._free = threading.Semaphore(limit)
        self._unread: dict[int, _Unread] = {}
        self._numbers = itertools.count()

    def end_idle(self) -> int:
        """Ends the streams whose clients have taken nothing for `idle` seconds; returns how many."""
        before = time.monotonic() - self._idle
        idle = [each for each in self._unread.copy().values() if each.since < before]
        for each in idle:
            _log.warning("ending %s: its client has read nothing for %.0f s", each.method, self._idle)
            each.context.cancel()
        return len(idle)

    def around(self, handler: AnyHandler, method: str) -> AnyHandler:
        if is_parked(handler):
            return handler
        if handler.response_streaming:
            return replaced(handler, self._replies(handler.unary_stream or handler.stream_stream, method))
        return enclosed(handler, lambda context: self._room()) if handler.request_streaming else handler

    def _replies(self, inner: Any, method: str) -> Callable[..., Iterator[Any]]:
        def call(request: Any, context: CallContext) -> Iterator[Any]:
            number = next(self._numbers)
            with self._room():
                try:
                    for reply in inner(request, context):
                        self._unread[number] = _Unread(method, context, time.monotonic())
                        yield reply
                        del self._unread[number]
                finally:
                    self._unread.pop(number, None)

        return call

    @contextmanager
    def _room(self) -> Iterator[None]:
        if not self._free.acquire(blocking=False):
            raise TooMany(f"{self._limit} uploads, downloads and listings are under way: end some, or try again later")
        try:
            yield
        finally:
            self._free.release()
