"""Responses of JSON: answers, and the reasons of requests that are not answered."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from stages.files.path_globs import FilterError
from stages.files.question import QuestionError
from stages.serving.follow.original_files import SourceGoneError
from stages.serving.follow.pachyderm_client import PachydermError
from stages.serving.follow.refusals import Refusal, bad_request

_LOG = logging.getLogger("lookalike")


class AsciiJSONResponse(JSONResponse):
    """JSON in ASCII: a true path may hold bytes that are not UTF-8, and only escapes can carry these."""

    def render(self, content: Any) -> bytes:
        return encode_json(content)


def encode_json(content: Any) -> bytes:
    """The bytes of a reply."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def add_to(app: FastAPI) -> None:
    """Makes every error of the application one reply."""
    app.exception_handler(Refusal)(_refused)
    for kind in _REFUSED:
        app.exception_handler(kind)(_refused)
    app.exception_handler(RequestValidationError)(_not_valid)
    app.exception_handler(HTTPException)(_not_routed)
    app.exception_handler(ClientDisconnect)(_gone)
    app.exception_handler(Exception)(_fault)


def client_gone() -> Refusal:
    """A client that has gone away; nobody reads this but the metrics."""
    return Refusal(499, "gone", "the client has gone away")


def refused(refusal: Refusal) -> Response:
    """The response to a request that is not answered."""
    return AsciiJSONResponse(refusal.as_data(), refusal.status, headers=dict(refusal.headers))


_REFUSED: Mapping[type[Exception], Callable[[Exception], Refusal]] = {
    QuestionError: lambda error: bad_request(str(error)),
    FilterError: lambda error: Refusal(400, "bad-filter", str(error)),
    SourceGoneError: lambda error: Refusal(404, "gone", str(error)),
    PachydermError: lambda error: Refusal(503, "no-pachyderm", f"{error}: try again", 5),
}
"""What routes may raise, beside refusals."""


async def _refused(_: Request, error: Exception) -> Response:
    if isinstance(error, Refusal):
        return refused(error)
    return refused(next(made for kind, made in _REFUSED.items() if isinstance(error, kind))(error))


async def _not_valid(request: Request, error: Exception) -> Response:
    """A parameter of a URL that does not have its type."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name, words = str(first["loc"][-1]), str(first["msg"])
    return await _refused(request, bad_request(f"{name}: {words[0].lower()}{words[1:300]}"))


async def _not_routed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path, method = request.scope["path"], request.method
    known = {
        404: ("not-found", f"there is nothing at {path[:200]}"),
        405: ("wrong-method", f"{method} is not allowed here: use {(error.headers or {}).get('Allow', 'another')}"),
    }
    code, message = known.get(error.status_code, ("bad-request", str(error.detail)))
    return AsciiJSONResponse(
        Refusal(error.status_code, code, message).as_data(), error.status_code, headers=error.headers
    )


async def _gone(request: Request, _: Exception) -> Response:
    _LOG.error("%s %s: the client closed the connection during its upload", request.method, request.scope["path"])
    return await _refused(request, client_gone())


async def _fault(request: Request, error: Exception) -> Response:
    words = f"a fault of lookalike's own, please report it ({type(error).__name__}: {error})"
    return await _refused(request, Refusal(500, "fault", words))
