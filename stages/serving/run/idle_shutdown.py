"""The end of a service that nobody asks any more. Wraps an application of ASGI; knows no routes but those of probes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from stages.serving.http.access_control import PROBES

_LOOK_EVERY = 1.0
"""Seconds between two looks whether a request is still under way, or the service still starts."""


class IdleShutdown:
    """An application whose requests are noted, except for probes. busy: whether the service must stay without any, as
    while it starts."""

    def __init__(self, inner: ASGIApp, seconds: float, busy: Callable[[], bool]) -> None:
        self._inner = inner
        self._seconds = seconds
        self._busy = busy
        self._under_way = 0
        self._since = time.monotonic()
        self._closed = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._inner(scope, receive, send)
            return
        self._under_way += 1
        try:
            await self._inner(scope, receive, send)
        finally:
            self._under_way -= 1
            self._since = time.monotonic()

    def watch(self, end: Callable[[], None]) -> None:
        """Calls `end` once, in another thread, when there was no request for so long; never after `close`."""
        threading.Thread(target=self._watch, args=(end,), name="idling", daemon=True).start()

    def close(self) -> None:
        """Ends the watch."""
        self._closed.set()

    def _watch(self, end: Callable[[], None]) -> None:
        while not self._closed.is_set():
            if self._under_way or self._busy():
                self._since = time.monotonic()
            left = self._since + self._seconds - time.monotonic()
            if left <= 0:
                end()
                return
            self._closed.wait(min(left, _LOOK_EVERY))
