"""An application of ASGI whose requests are counted and timed, with those that are refused at the door."""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stages.serving.answer.metrics import ServiceMetrics


class MetricsMiddleware:
    """An application, measured."""

    def __init__(self, inner: ASGIApp, metrics: ServiceMetrics) -> None:
        self._inner = inner
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500  # of a response that never begins

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._inner(scope, receive, sending)
        finally:
            # The router has put the route there, by which the paths of all pictures are one.
            name = getattr(scope.get("route"), "path", "none")
            self._metrics.requests.labels(name, str(status)).inc()
            self._metrics.seconds.labels(name).observe(time.perf_counter() - began)
