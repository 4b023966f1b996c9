"""The routes of the service. Each takes one snapshot, asks the other modules, and words the response.

Knows HTTP; knows neither how an answer comes about nor Pachyderm.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

from stages.knn.settings import LARGEST_K
from stages.serving import answering, apidocs, assets, bodies, replies
from stages.serving.access import COOKIE, Access
from stages.serving.asking import Asking
from stages.serving.bounds import Bounds
from stages.serving.browsing import Browsing
from stages.serving.configuration import Configuration
from stages.serving.decoding import Turns, turns
from stages.serving.failures import Refusal
from stages.serving.fetching import Limits
from stages.serving.measuring import Measured
from stages.serving.metrics import Metrics
from stages.serving.questions import DEFAULT_K, MOST_PICTURES, Question, parsed
from stages.serving.replies import Reply, encoded
from stages.serving.room import Room
from stages.serving.snapshots import Snapshot, State
from stages.serving.tracing import Tracer
from stages.serving.transfer import Application

Value = TypeVar("Value")

VERSION = "1"
"""Of the API."""

_TOKEN_BYTES = 1 << 12
"""Most bytes of a request that signs in."""


def application(
    configuration: Configuration,
    state: Callable[[], State],
    tracer: Tracer | None = None,
    limits: Limits | None = None,
    bounds: Bounds | None = None,
) -> Application:
    """The application of ASGI. state: gives the state of the moment. tracer: makes the pages of traces, where there is
    one. limits: of pictures fetched by URL. bounds: of all requests."""
    service = _Service(configuration, state, tracer, limits or Limits(), bounds or Bounds())
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
    service.access = Access(app, configuration, service.bounds)
    return Measured(service.access, service.counted)


class _Service:
    def __init__(
        self,
        configuration: Configuration,
        state: Callable[[], State],
        tracer: Tracer | None,
        limits: Limits,
        bounds: Bounds,
    ) -> None:
        self._configuration = configuration
        self._state = state
        self._tracer = tracer
        self.bounds = bounds
        self.counted = Metrics()
        self._room = Room(bounds)
        self._ask = Asking(state, self.counted, limits, self._room, bounds.answer)
        self._browsing = Browsing(self._ask.snapshot, tracer)
        self.access: Access | None = None

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        yield
        self._browsing.close()
        await self._ask.close()

    def add_to(self, app: FastAPI) -> None:
        replies.add_to(app)
        app.get("/health", tags=["state"])(self.health)
        app.get("/ready", tags=["state"])(self.ready)
        app.get("/status", tags=["state"])(self.status)
        app.get("/metrics", tags=["state"])(self.metrics)
        app.post("/search", tags=["search"], openapi_extra=apidocs.SEARCH)(self.search)
        self._browsing.add_to(app)
        app.post("/session", tags=["access"])(self.sign_in)
        app.delete("/session", tags=["access"])(self.sign_out)
        app.get("/openapi.json", include_in_schema=False)(lambda: Reply(apidocs.document(app.openapi())))
        app.get("/docs", include_in_schema=False)(lambda: HTMLResponse(apidocs.page(apidocs.document(app.openapi()))))
        assets.add_to(app)

    async def health(self) -> Response:
        """Whether the process lives."""
        return Reply({"state": "alive"})

    async def ready(self) -> Response:
        """Whether searches are answered, or would be if there were pictures. /status tells the reason."""
        kind = self._state().kind
        return Reply({"state": kind}, 200 if kind in ("ready", "empty") else 503)

    async def status(self) -> Response:
        """The state, the commits, the model, and the limits of requests."""
        state = self._state()
        snapshot = state.snapshot
        known = {
            "state": state.kind,
            "message": state.message,
            "pictures": 0 if snapshot is None else len(snapshot.library),
            "commits": None,
            "model": None,
            "devices": None,
            "metric": None,
            "calibrated": False,
            **(_described(snapshot) if snapshot is not None else {}),
            "k": {"default": DEFAULT_K, "most": LARGEST_K},
            "trace": self._tracer is not None,
            "follows": not self._configuration.at,
            "limits": {"bytes": self.bounds.body_bytes, "pictures": MOST_PICTURES},
            "version": VERSION,
        }
        return Reply(known)

    async def metrics(self) -> Response:
        """Counters and times for Prometheus."""
        snapshot = self._state().snapshot
        commits = None if snapshot is None else snapshot.commits
        self.counted.serving(
            None if commits is None else (commits.index, commits.library, commits.model),
            0 if snapshot is None else len(snapshot.library),
        )
        for name, batcher in (("features", self._ask.features), ("search", self._ask.searches)):
            self.counted.waiting.labels(name).set(len(batcher))
        return Response(self.counted.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def search(self, request: Request) -> Response:
        """The nearest pictures to a picture, to a region of one, or to several together; several searches in one
        call."""
        self._ask.snapshot()  # before a body is read for nothing
        with ExitStack() as room:
            room.enter_context(self._room.request(_length(request, self.bounds.body_bytes)))
            asked = await bodies.asked(request)
            own = turns()
            answers = await _unless_gone(request, [self._answer(each, asked, own) for each in asked.questions])
            if asked.several:
                parts = (encoded(each.as_data()) if isinstance(each, Refusal) else each for each in answers)
                content = b'{"answers":[%b]}' % b",".join(parts)
            else:
                (only,) = answers
                if isinstance(only, Refusal):
                    raise only
                content = only
            room.enter_context(self._room.answer(len(content)))
            return _Held(content, room.pop_all())

    async def _answer(self, question: Question, asked: bodies.Asked, own: Turns) -> bytes | Refusal:
        try:
            return encoded(await self._ask.answer(question, asked.files, own))
        except Refusal as refusal:
            return refusal

    async def sign_in(self, request: Request) -> Response:
        """Gives the cookie of those who have the token: {"token": "…"}."""
        given = parsed(await bodies.small(request, _TOKEN_BYTES))
        token = given.get("token") if isinstance(given, dict) else None
        assert self.access is not None
        if not isinstance(token, str) or not self._configuration.token or not self.access.accepts(token):
            await asyncio.sleep(self.bounds.guess)  # so that guessing takes long
            raise Refusal(401, "wrong-token", "this is not the token of this service")
        secure = bool(self._configuration.certificate or self._configuration.proxy)
        response = Reply({})
        response.set_cookie(COOKIE, self.access.session, httponly=True, samesite="strict", secure=secure)
        return response

    async def sign_out(self) -> Response:
        """Takes the cookie back."""
        response = Reply({})
        response.delete_cookie(COOKIE)
        return response


class _Held(Response):
    """JSON whose room is taken until it is sent: a slow client holds its answer in memory."""

    media_type = "application/json"

    def __init__(self, content: bytes, room: ExitStack) -> None:
        super().__init__(content)
        self._room = room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._room:
            await super().__call__(scope, receive, send)


def _described(snapshot: Snapshot) -> dict[str, Any]:
    return {
        **answering.origin(snapshot),
        "metric": snapshot.library.facts.metric,
        "calibrated": snapshot.similarity is not None,
        "exact": snapshot.searching.exact,
    }


def _length(request: Request, most: int) -> int:
    """The bytes that a request announces; the most that it may have if it does not."""
    text = request.headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else most


async def _unless_gone(request: Request, works: Sequence[Coroutine[Any, Any, Value]]) -> list[Value]:
    """The results of all; none of them goes on once the client has gone away, nor after this has ended."""
    tasks = [asyncio.create_task(each) for each in works]
    answers = asyncio.gather(*tasks)
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait((answers, gone), return_when=asyncio.FIRST_COMPLETED)
        if not answers.done():
            raise replies.gone()
        return answers.result()
    finally:
        for each in (*tasks, gone):
            each.cancel()
        await asyncio.gather(*tasks, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
