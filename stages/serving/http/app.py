"""The application: its routes put together from those of searches and of the promoted model, whichever it serves.

Knows HTTP; knows neither how an answer comes about nor Pachyderm.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from stages.files.url_fetcher import FetchLimits
from stages.serving.answer.classify_handler import ClassifyHandler
from stages.serving.answer.load_limiter import LoadLimiter, ServiceLimits
from stages.serving.answer.metrics import ServiceMetrics
from stages.serving.answer.query_embedder import QueryEmbedder
from stages.serving.answer.request_schema import MOST_PICTURES
from stages.serving.follow.configuration import ServiceConfiguration
from stages.serving.follow.promoted_model import PromotedModel
from stages.serving.follow.snapshots import Snapshot, SnapshotState
from stages.serving.http import api_docs, json_responses, page_assets
from stages.serving.http.access_control import AccessControl, SessionRoutes
from stages.serving.http.classify_routes import ClassifyRoutes
from stages.serving.http.edit_door import LibraryEditor
from stages.serving.http.json_responses import AsciiJSONResponse
from stages.serving.http.response_models import StateBody, StatusBody
from stages.serving.http.response_writer import ResponseWriter
from stages.serving.http.search_routes import SearchRoutes
from stages.serving.http.trace_renderer import TraceRenderer

VERSION = "2"
"""Of the API."""


class ServiceApplication:
    """The application of ASGI."""

    def __init__(
        self,
        configuration: ServiceConfiguration,
        state: Callable[[], SnapshotState[Snapshot]] | None = None,
        promoted: Callable[[], SnapshotState[PromotedModel]] | None = None,
        tracer: TraceRenderer | None = None,
        limits: FetchLimits | None = None,
        bounds: ServiceLimits | None = None,
        editor: LibraryEditor | None = None,
    ) -> None:
        """state: gives the state of the index of the moment, None for a service that does not search. promoted: the
        same of the promoted model, None for one that does not classify; one of the two is needed. tracer: makes the
        pages of traces, where there is one. limits: of pictures fetched by URL. bounds: of all requests. editor:
        changes what is ticked on the page, None for a service that changes nothing."""
        bounds = bounds or ServiceLimits()
        self._configuration = configuration
        self._traces = tracer is not None
        self._bounds = bounds
        self._metrics = ServiceMetrics()
        self._sessions = SessionRoutes(configuration, bounds.guess)
        room = LoadLimiter(bounds)
        self._seeing = QueryEmbedder(self._metrics, limits or FetchLimits(), room, bounds.answer)
        self._answered = answered = ResponseWriter(bounds, room)
        self._searches = (
            None
            if state is None
            else SearchRoutes(state, self._metrics, self._seeing, answered, tracer, configuration, editor)
        )

        def library() -> Snapshot | None:
            return None if state is None else state().snapshot

        self._classes = None
        if promoted is not None:
            classifying = ClassifyHandler(promoted, library, self._metrics, self._seeing)
            self._classes = ClassifyRoutes(classifying, self._metrics, answered)
        self._all: list[SearchRoutes | ClassifyRoutes] = [
            each for each in (self._searches, self._classes) if each is not None
        ]
        app = FastAPI(
            title="lookalike",
            version=VERSION,
            docs_url=None,
            redoc_url=None,
            openapi_url=None,
            redirect_slashes=False,
            lifespan=self._lifespan,
            responses=api_docs.REFUSED,
            generate_unique_id_function=api_docs.operation_id,
        )
        self._add_to(app)
        self._guarded = AccessControl(app, configuration, bounds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, which is counted and timed even if it is refused at the door."""
        if scope["type"] != "http":
            await self._guarded(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500  # of a response that never begins

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._guarded(scope, receive, sending)
        finally:
            # The router has put the route there, by which the paths of all pictures are one.
            name = getattr(scope.get("route"), "path", "none")
            self._metrics.requests.labels(name, str(status)).inc()
            self._metrics.seconds.labels(name).observe(time.perf_counter() - began)

    @asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        yield
        for each in self._all:
            await each.close()
        await self._seeing.close()

    def _add_to(self, app: FastAPI) -> None:
        json_responses.add_to(app)
        app.get("/health", tags=["state"], response_model=StateBody)(self.health)
        app.get("/ready", tags=["state"], response_model=StateBody)(self.ready)
        app.get("/status", tags=["state"], response_model=StatusBody)(self.status)
        app.get("/metrics", tags=["state"], response_class=PlainTextResponse)(self.metrics)
        for each in self._all:
            each.add_to(app)
        extra = {"requestBody": {"required": True, "content": {"image/*": {"schema": api_docs.FILE}}}}
        app.post("/previews", tags=["search"], response_class=Response, responses=api_docs.JPEG, openapi_extra=extra)(
            self.preview
        )
        self._sessions.add_to(app)
        app.get("/openapi.json", include_in_schema=False)(lambda: AsciiJSONResponse(api_docs.document(app.openapi())))
        app.get("/docs", include_in_schema=False)(lambda: HTMLResponse(api_docs.page(api_docs.document(app.openapi()))))
        page_assets.add_to(app)

    async def health(self) -> Response:
        """Whether the process lives."""
        return AsciiJSONResponse({"state": "alive"})

    async def ready(self) -> Response:
        """Whether questions are answered, or would be if there were pictures, or a model. /status tells the reason."""
        kind = self._all[0].state().kind
        return AsciiJSONResponse({"state": kind}, 200 if kind in ("ready", "empty") else 503)

    async def status(self) -> Response:
        """The state, the commits, the model, the promoted classifier, and the limits of requests."""
        state = self._all[0].state()
        promoted = None if self._classes is None else self._classes.status()
        known = {"pictures": 0, "commits": None, "model": None, "devices": None}
        if self._searches is not None:
            known |= self._searches.status()
        elif promoted is not None:
            known |= {name: promoted[name] for name in ("commits", "devices")}
        return AsciiJSONResponse(
            {
                "state": state.kind,
                "message": state.message,
                **known,
                "search": self._searches is not None,
                "classify": promoted,
                "trace": self._traces,
                "follows": not self._configuration.at,
                "limits": {"bytes": self._bounds.body_bytes, "pictures": MOST_PICTURES},
                "version": VERSION,
            }
        )

    async def preview(self, request: Request) -> Response:
        """The picture in the body as a JPEG file, upright and at most 2,048 pixels wide and high."""
        return await self._answered.preview(request, self._seeing.preview)

    async def metrics(self) -> Response:
        """Counters and times for Prometheus."""
        for each in self._all:
            each.measure()
        self._metrics.waiting.labels("features").set(len(self._seeing.features))
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
