"""The routes of the service. Each takes one snapshot, asks the other modules, and words the response.

Knows HTTP; knows neither how an answer comes about nor Pachyderm.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.exceptions import HTTPException

from stages.knn.settings import LARGEST_K
from stages.serving import answering, apidocs, assets, bodies, tracing
from stages.serving.access import COOKIE, Access
from stages.serving.asking import Asking
from stages.serving.configuration import Configuration
from stages.serving.failures import Refusal, bad
from stages.serving.fetching import Limits
from stages.serving.globs import FilterError
from stages.serving.metrics import Metrics
from stages.serving.originals import GoneError
from stages.serving.pachyderm import PachydermError
from stages.serving.questions import DEFAULT_K, MOST_PICTURES, parsed
from stages.serving.snapshots import Snapshot, State
from stages.serving.tracing import Tracer

VERSION = "1"
"""Of the API."""

UPLOAD_BYTES = 64 << 20
"""Most bytes of a request."""

MOST_LISTED = 500

_INLINE = ("image/jpeg", "image/png", "image/gif", "image/webp", "image/avif")
"""Media types that browsers show and that hold no code."""

_UNCHANGING = "private, max-age=31536000, immutable"


class Routes(Protocol):
    """A part of the service that adds its routes."""

    def __call__(self, app: FastAPI) -> None: ...


def application(
    configuration: Configuration,
    state: Callable[[], State],
    tracer: Tracer | None = None,
    limits: Limits | None = None,
) -> Access:
    """The application of ASGI. state: gives the state of the moment. tracer: makes the pages of traces, where there is
    one. limits: of pictures fetched by URL."""
    service = _Service(configuration, state, tracer, limits or Limits())
    app = FastAPI(
        title="lookalike", version=VERSION, docs_url=None, redoc_url=None, lifespan=service.lifespan, openapi_url=None
    )
    service.add_to(app)
    access = Access(app, configuration, UPLOAD_BYTES)
    service.access = access
    return access


class _Service:
    def __init__(
        self, configuration: Configuration, state: Callable[[], State], tracer: Tracer | None, limits: Limits
    ) -> None:
        self._configuration = configuration
        self._state = state
        self._tracer = tracer
        self._limits = limits
        self._metrics = Metrics()
        self._asking: Asking | None = None
        self.access: Access | None = None

    @property
    def _ask(self) -> Asking:
        if self._asking is None:
            self._asking = Asking(self._state, self._metrics, self._limits)
        return self._asking

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        yield
        if self._asking is not None:
            await self._asking.close()

    def add_to(self, app: FastAPI) -> None:
        app.exception_handler(Refusal)(_refused)
        app.exception_handler(HTTPException)(_not_routed)
        app.exception_handler(Exception)(_fault)
        app.middleware("http")(self._measured)
        app.get("/health", tags=["state"])(self.health)
        app.get("/ready", tags=["state"])(self.ready)
        app.get("/status", tags=["state"])(self.status)
        app.get("/metrics", tags=["state"])(self.metrics)
        app.post("/search", tags=["search"], openapi_extra=apidocs.SEARCH)(self.search)
        app.get("/images/{id}", tags=["library"])(self.image)
        app.get("/originals/{id}", tags=["library"])(self.original)
        app.get("/library", tags=["library"])(self.library)
        app.get("/trace/{id}", tags=["library"])(self.trace)
        app.post("/session", tags=["access"])(self.sign_in)
        app.delete("/session", tags=["access"])(self.sign_out)
        document = app.openapi
        app.get("/openapi.json", include_in_schema=False)(lambda: JSONResponse(document()))
        app.get("/docs", include_in_schema=False)(lambda: HTMLResponse(apidocs.page(document())))
        assets.add_to(app)

    async def health(self) -> dict[str, str]:
        """Whether the process lives."""
        return {"state": "alive"}

    async def ready(self) -> Response:
        """Whether searches are answered, or would be if there were pictures."""
        state = self._state()
        there = state.kind in ("ready", "empty")
        return JSONResponse({"state": state.kind, "message": state.message}, 200 if there else 503)

    async def status(self) -> dict[str, Any]:
        """The state, the commits, the model, and the limits of requests."""
        state = self._state()
        snapshot = state.snapshot
        known = _described(snapshot) if snapshot is not None else {}
        return {
            "state": state.kind,
            "message": state.message,
            "pictures": 0 if snapshot is None else len(snapshot.library),
            "commits": None,
            "model": None,
            "devices": None,
            "metric": None,
            "calibrated": False,
            **known,
            "k": {"default": DEFAULT_K, "most": LARGEST_K},
            "trace": self._tracer is not None,
            "follows": not self._configuration.at,
            "limits": {"bytes": UPLOAD_BYTES, "pictures": MOST_PICTURES},
            "version": VERSION,
        }

    async def metrics(self) -> Response:
        """Counters and times for Prometheus."""
        snapshot = self._state().snapshot
        commits = None if snapshot is None else snapshot.commits
        self._metrics.serving(
            None if commits is None else (commits.index, commits.library, commits.model),
            0 if snapshot is None else len(snapshot.library),
        )
        for name, batcher in (("features", self._ask.features), ("search", self._ask.searches)):
            self._metrics.waiting.labels(name).set(len(batcher))
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def search(self, request: Request) -> Response:
        """The nearest pictures to a picture, to a region of one, or to several together; several searches in one
        call."""
        self._ask.snapshot()  # before a body is read for nothing
        with self._ask.room(_length(request)):
            asked = await bodies.asked(request)
            answers = await _unless_gone(request, [self._answer(each, asked) for each in asked.questions])
        if not asked.several:
            (only,) = answers
            if isinstance(only, Refusal):
                raise only
            return JSONResponse(only)
        return JSONResponse({"answers": [each.as_data() if isinstance(each, Refusal) else each for each in answers]})

    async def _answer(self, question: Any, asked: bodies.Asked) -> dict[str, Any] | Refusal:
        try:
            return await self._ask.answer(question, asked.files)
        except Refusal as refusal:
            return refusal

    async def image(self, id: str) -> Response:
        """A picture's thumbnail, a JPEG file."""
        snapshot = self._ask.snapshot()
        headers = {"ETag": f'"{id}"', "Cache-Control": _UNCHANGING}
        return Response(snapshot.library.thumbnail(_row(snapshot, id)), media_type="image/jpeg", headers=headers)

    async def original(self, id: str, source: int = 0, download: bool = False) -> Response:
        """The file that a picture came from, as it was put; of several sources the one with this number."""
        snapshot = self._ask.snapshot()
        sources = snapshot.library.sources(_row(snapshot, id))
        if not 0 <= source < len(sources):
            raise bad(f"source {source}: this picture has {len(sources)}, counted from 0")
        try:
            found = await run_in_threadpool(snapshot.originals.open, sources[source])
        except GoneError as error:
            raise Refusal(404, "gone", str(error)) from error
        except PachydermError as error:
            raise Refusal(503, "no-pachyderm", f"{error}: try again", 5) from error
        shown = found.media_type in _INLINE and not download
        name = quote(found.name, safe="", errors="replace")
        headers = {
            "Content-Disposition": f"{'inline' if shown else 'attachment'}; filename*=UTF-8''{name}",
            "Content-Length": str(found.size),
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "Cache-Control": "private, no-cache",
        }
        return StreamingResponse(iterate_in_threadpool(found.chunks), media_type=found.media_type, headers=headers)

    async def library(self, folder: str = "", after: str | None = None, limit: int = 100) -> dict[str, Any]:
        """A page of a folder of the library: its folders, then its pictures."""
        snapshot = self._ask.snapshot()
        if not 1 <= limit <= MOST_LISTED:
            raise bad(f"limit must be 1 to {MOST_LISTED}")
        try:
            found = await run_in_threadpool(lambda: snapshot.library.paths.listing(folder, after, limit))
        except FilterError as error:
            raise bad(str(error)) from error
        ids = [(snapshot.library.id(each.row), each.path) for each in found.pictures]
        return {
            "folder": found.folder,
            "folders": [{"name": each.name, "pictures": each.pictures} for each in found.folders],
            "pictures": [{"id": id, "path": path, **answering.addresses(id)} for id, path in ids],
            "after": found.after,
            "total": found.total,
            "commits": snapshot.commits.as_data(),
        }

    async def trace(self, id: str, path: str = "") -> Response:
        """A page with the way of a picture, from its file to the index."""
        snapshot = self._ask.snapshot()
        sources = snapshot.library.sources(_row(snapshot, id))
        if path and path not in {each.path for each in sources}:
            raise Refusal(404, "not-in-library", f"the picture {id} does not come from {path[:200]}")
        return await tracing.response(self._tracer, id, path or sources[0].path, snapshot.commits.index)

    async def sign_in(self, request: Request) -> Response:
        """Gives the cookie of those who have the token: {"token": "…"}."""
        given = parsed(await request.body())
        token = given.get("token") if isinstance(given, dict) else None
        assert self.access is not None
        if not isinstance(token, str) or not self._configuration.token or not self.access.accepts(token):
            await asyncio.sleep(1)  # so that guessing takes long
            raise Refusal(401, "wrong-token", "this is not the token of this service")
        secure = bool(self._configuration.certificate or self._configuration.proxy)
        response = JSONResponse({})
        response.set_cookie(COOKIE, self.access.session, httponly=True, samesite="strict", secure=secure)
        return response

    async def sign_out(self) -> Response:
        """Takes the cookie back."""
        response = JSONResponse({})
        response.delete_cookie(COOKIE)
        return response

    async def _measured(self, request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        began = time.perf_counter()
        response = await answer(request)
        route = request.scope.get("route")
        name = getattr(route, "path", "none")
        self._metrics.requests.labels(name, str(response.status_code)).inc()
        self._metrics.seconds.labels(name).observe(time.perf_counter() - began)
        return response


def _described(snapshot: Snapshot) -> dict[str, Any]:
    return {
        **answering.origin(snapshot),
        "metric": snapshot.library.facts.metric,
        "calibrated": snapshot.similarity is not None,
        "exact": snapshot.searching.exact,
    }


def _row(snapshot: Snapshot, id: str) -> int:
    row = snapshot.library.row(id)
    if row is None:
        raise Refusal(404, "not-in-library", f"the library does not have a picture {id[:80]}: was it removed?")
    return row


def _length(request: Request) -> int:
    """The bytes that a request announces; the most that it may have if it does not."""
    text = request.headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else UPLOAD_BYTES


async def _unless_gone(request: Request, works: list[Any]) -> list[Any]:
    """The results of all; none of them goes on once the client has gone away."""
    answers = asyncio.gather(*works)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((answers, gone), return_when=asyncio.FIRST_COMPLETED)
        if not answers.done():
            raise Refusal(499, "gone", "the client has gone away")
        return list(answers.result())
    finally:
        gone.cancel()
        answers.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _refused(_: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, Refusal)
    return JSONResponse(refusal.as_data(), refusal.status, headers=dict(refusal.headers))


async def _not_routed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {404: f"there is nothing at {request.url.path[:200]}", 405: f"{request.method} is not possible here"}
    message = words.get(error.status_code, str(error.detail))
    refusal = Refusal(error.status_code, {404: "not-found", 405: "wrong-method"}.get(error.status_code, "bad"), message)
    return JSONResponse(refusal.as_data(), error.status_code, headers=error.headers)


async def _fault(_: Request, error: Exception) -> Response:
    words = f"a fault of lookalike's own, please report it ({type(error).__name__}: {error})"
    return JSONResponse(Refusal(500, "fault", words).as_data(), 500)
