"""The application: its routes put together from those of searches and of the promoted model, whichever it serves.

Knows HTTP; knows neither how an answer comes about nor Pachyderm.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse

from stages.serving.answer.bounds import Bounds
from stages.serving.answer.fetching import Limits
from stages.serving.answer.metrics import Metrics
from stages.serving.answer.questions import MOST_PICTURES
from stages.serving.answer.room import Room
from stages.serving.answer.seeing import Seeing
from stages.serving.follow.configuration import Configuration
from stages.serving.follow.promoted import Promoted
from stages.serving.follow.snapshots import Snapshot, State
from stages.serving.http import apidocs, assets, replies
from stages.serving.http.access import Access
from stages.serving.http.answered import Answered
from stages.serving.http.classes import Classes
from stages.serving.http.measuring import Measured
from stages.serving.http.replies import Reply
from stages.serving.http.searches import Searches
from stages.serving.http.sessions import Sessions
from stages.serving.http.tracing import Tracer
from stages.serving.http.transfer import Application

VERSION = "1"
"""Of the API."""


def application(
    configuration: Configuration,
    state: Callable[[], State[Snapshot]] | None = None,
    promoted: Callable[[], State[Promoted]] | None = None,
    tracer: Tracer | None = None,
    limits: Limits | None = None,
    bounds: Bounds | None = None,
) -> Application:
    """The application of ASGI. state: gives the state of the index of the moment, None for a service that does not
    search. promoted: the same of the promoted model, None for one that does not classify; one of the two is needed.
    tracer: makes the pages of traces, where there is one. limits: of pictures fetched by URL. bounds: of all
    requests."""
    service = _Service(configuration, state, promoted, tracer, limits or Limits(), bounds or Bounds())
    app = FastAPI(
        title="lookalike",
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=service.lifespan,
    )
    service.add_to(app)
    service.sessions.access = Access(app, configuration, service.bounds)
    return Measured(service.sessions.access, service.counted)


class _Service:
    def __init__(
        self,
        configuration: Configuration,
        state: Callable[[], State[Snapshot]] | None,
        promoted: Callable[[], State[Promoted]] | None,
        tracer: Tracer | None,
        limits: Limits,
        bounds: Bounds,
    ) -> None:
        self._configuration = configuration
        self._traces = tracer is not None
        self.bounds = bounds
        self.counted = Metrics()
        self.sessions = Sessions(configuration, bounds.guess)
        room = Room(bounds)
        self._seeing = Seeing(self.counted, limits, room, bounds.answer)
        answered = Answered(bounds, room)
        self._searches = None if state is None else Searches(state, self.counted, self._seeing, answered, tracer)

        def library() -> Snapshot | None:
            return None if state is None else state().snapshot

        self._classes = None if promoted is None else Classes(promoted, library, self.counted, self._seeing, answered)
        self._all: list[Searches | Classes] = [each for each in (self._searches, self._classes) if each is not None]

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        yield
        for each in self._all:
            await each.close()
        await self._seeing.close()

    def add_to(self, app: FastAPI) -> None:
        replies.add_to(app)
        app.get("/health", tags=["state"])(self.health)
        app.get("/ready", tags=["state"])(self.ready)
        app.get("/status", tags=["state"])(self.status)
        app.get("/metrics", tags=["state"])(self.metrics)
        for each in self._all:
            each.add_to(app)
        self.sessions.add_to(app)
        app.get("/openapi.json", include_in_schema=False)(lambda: Reply(apidocs.document(app.openapi())))
        app.get("/docs", include_in_schema=False)(lambda: HTMLResponse(apidocs.page(apidocs.document(app.openapi()))))
        assets.add_to(app)

    async def health(self) -> Response:
        """Whether the process lives."""
        return Reply({"state": "alive"})

    async def ready(self) -> Response:
        """Whether questions are answered, or would be if there were pictures, or a model. /status tells the reason."""
        kind = self._all[0].state().kind
        return Reply({"state": kind}, 200 if kind in ("ready", "empty") else 503)

    async def status(self) -> Response:
        """The state, the commits, the model, the promoted classifier, and the limits of requests."""
        state = self._all[0].state()
        promoted = None if self._classes is None else self._classes.status()
        known = {"pictures": 0, "commits": None, "model": None, "devices": None}
        if self._searches is not None:
            known |= self._searches.status()
        elif promoted is not None:
            known |= {name: promoted[name] for name in ("commits", "devices")}
        return Reply(
            {
                "state": state.kind,
                "message": state.message,
                **known,
                "search": self._searches is not None,
                "classify": promoted,
                "trace": self._traces,
                "follows": not self._configuration.at,
                "limits": {"bytes": self.bounds.body_bytes, "pictures": MOST_PICTURES},
                "version": VERSION,
            }
        )

    async def metrics(self) -> Response:
        """Counters and times for Prometheus."""
        for each in self._all:
            each.measure()
        self.counted.waiting.labels("features").set(len(self._seeing.features))
        return Response(self.counted.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
