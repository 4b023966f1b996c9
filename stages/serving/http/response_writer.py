"""A request's questions answered in one response, within the room that there is. Knows no kind of question."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from fastapi import Request, Response
from starlette.types import Receive, Scope, Send

from stages.report import answer_table
from stages.report.answer_table import CSV, PARQUET
from stages.serving.answer.load_limiter import LoadLimiter, ServiceLimits
from stages.serving.answer.query_decoder import DecodeSlots, PictureUpload, decode_slots
from stages.serving.answer.request_schema import PictureRequest
from stages.serving.follow.refusals import Refusal, bad_request
from stages.serving.http import json_responses, request_body
from stages.serving.http.json_responses import encode_json
from stages.serving.http.request_parser import SEARCH, RequestParser

_RequestT = TypeVar("_RequestT", bound=PictureRequest)
_ValueT = TypeVar("_ValueT")

PreviewFunction = Callable[[PictureUpload], Coroutine[Any, Any, bytes]]
"""Makes a JPEG file of an upload. Raises Refusal."""

AnswerFunction = Callable[[_RequestT, Sequence[PictureUpload], DecodeSlots], Awaitable[dict[str, Any]]]
"""Gives the answer to one question with the files of its request. Raises Refusal."""


class ResponseWriter:
    """Answers requests, each as a whole."""

    def __init__(self, bounds: ServiceLimits, room: LoadLimiter) -> None:
        self._bounds = bounds
        self._room = room

    async def response(
        self, request: Request, form: RequestParser[_RequestT], answer: AnswerFunction[_RequestT]
    ) -> Response:
        """The response to a request with questions of a form. Raises Refusal."""
        with self._taken(request) as room:
            media_type, encode = _encoding(request, form)
            asked = await request_body.read_body(request, form)
            own = decode_slots()
            if asked.several and encode is not encode_json:
                raise bad_request("a table has one answer: ask one question")
            works = [_one(answer, each, asked.files, own, encode) for each in asked.questions]
            answers = await _unless_gone(request, works)
            if asked.several:
                parts = (encode_json(each.as_data()) if isinstance(each, Refusal) else each for each in answers)
                content = b'{"answers":[%b]}' % b",".join(parts)
            else:
                (only,) = answers
                if isinstance(only, Refusal):
                    raise only
                content = only
            return self._held(request, content, room, media_type)

    async def preview(self, request: Request, preview: PreviewFunction) -> Response:
        """The response to a request with a picture, which `preview` makes a JPEG file of. Raises Refusal."""
        with self._taken(request) as room:
            (content,) = await _unless_gone(request, [preview(await request_body.read_picture(request))])
            return self._held(request, content, room, "image/jpeg")

    @contextmanager
    def _taken(self, request: Request) -> Iterator[ExitStack]:
        """Takes the room of a request, until the block ends or its response is sent."""
        with ExitStack() as room:
            client = _client(request)
            room.enter_context(self._room.requests.room(1, client))
            announced = int(request.headers.get("content-length", self._bounds.body_bytes))
            room.enter_context(self._room.bytes.room(announced, client))
            yield room

    def _held(self, request: Request, content: bytes, room: ExitStack, media_type: str) -> Response:
        room.enter_context(self._room.bytes.room(len(content), _client(request)))
        return _Held(content, room.pop_all(), media_type)


def _client(request: Request) -> str:
    return str(request.scope.get("state", {}).get("client", ""))


def _encoding(request: Request, form: RequestParser[_RequestT]) -> tuple[str, Callable[[dict[str, Any]], bytes]]:
    """The media type of the response, and what makes its bytes of an answer: JSON unless a search wants a table."""
    wanted = request.headers.get("accept", "").partition(";")[0].strip().lower()
    if form is SEARCH and wanted in (CSV, PARQUET):
        return wanted, lambda answer: answer_table.encoded(answer_table.to_arrow(answer_table.rows(answer)), wanted)
    return "application/json", encode_json


async def _one(
    answer: AnswerFunction[_RequestT],
    question: _RequestT,
    files: Sequence[PictureUpload],
    own: DecodeSlots,
    encode: Callable[[dict[str, Any]], bytes],
) -> bytes | Refusal:
    try:
        return encode(await answer(question, files, own))
    except Refusal as refusal:
        return refusal


class _Held(Response):
    """A response whose room is taken until it is sent: a slow client holds its answer in memory."""

    def __init__(self, content: bytes, room: ExitStack, media_type: str) -> None:
        super().__init__(content, media_type=media_type)
        self._room = room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._room:
            await super().__call__(scope, receive, send)


async def _unless_gone(request: Request, works: Sequence[Coroutine[Any, Any, _ValueT]]) -> list[_ValueT]:
    """The results of all; none of them goes on once the client has gone away, nor after this has ended."""
    tasks = [asyncio.create_task(each) for each in works]
    answers = asyncio.gather(*tasks)
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait((answers, gone), return_when=asyncio.FIRST_COMPLETED)
        if not answers.done():
            raise json_responses.client_gone()
        return answers.result()
    finally:
        for each in (*tasks, gone):
            each.cancel()
        await asyncio.gather(*tasks, answers, gone, return_exceptions=True)  # asyncio logs errors nobody takes


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
