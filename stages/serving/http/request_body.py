"""The bodies of requests with questions: JSON, files with a question, or one picture alone. Answers nothing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import IO, Generic, TypeVar

from fastapi import Request
from python_multipart.multipart import parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from stages.serving.answer.query_decoder import PictureUpload
from stages.serving.answer.request_schema import MOST_PICTURES, PictureRequest
from stages.serving.follow.refusals import Refusal, bad_request
from stages.serving.http.request_parser import RequestParser

_RequestT = TypeVar("_RequestT", bound=PictureRequest)

_IN_MEMORY = 1 << 20
_MOST_JSON = 1 << 20
_MUCH_JSON = 1 << 14
"""Bytes."""


@dataclass(frozen=True)
class RequestBody(Generic[_RequestT]):
    """What a request asks. several: whether its answer is a list."""

    questions: Sequence[_RequestT]
    several: bool
    files: Sequence[PictureUpload]


async def read_body(request: Request, form: RequestParser[_RequestT]) -> RequestBody[_RequestT]:
    """The questions of a request. Raises Refusal."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return RequestBody(*await _parsed(await read_small(request, _MOST_JSON), form), [])
    if kind == "multipart/form-data":
        return await _multipart(request, form)
    if kind.startswith("image/") or kind == "application/octet-stream":
        question = form.from_parameters(request.query_params.multi_items())
        return RequestBody([question], False, [await read_picture(request)])
    raise Refusal(
        415,
        "wrong-type",
        "send application/json, multipart/form-data with parts named picture, or a picture with its own type, "
        "such as image/jpeg",
    )


async def read_small(request: Request, most: int) -> bytes:
    """A body of at most so many bytes. Raises Refusal."""
    gathered = bytearray()
    async for piece in request.stream():
        gathered += piece
        if len(gathered) > most:
            raise Refusal(413, "too-large", f"the JSON has more than {most:,} bytes")
    return bytes(gathered)


async def read_picture(request: Request) -> PictureUpload:
    """The body of a request as a file. Raises Refusal."""
    spool: IO[bytes] = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  closed when nothing refers to it
    async for piece in request.stream():
        spool.write(piece)
    if not spool.tell():
        raise bad_request("the body is empty: send the bytes of a picture")
    return PictureUpload("", _Reader(spool))


async def _multipart(request: Request, asking: RequestParser[_RequestT]) -> RequestBody[_RequestT]:
    _, options = parse_options_header(request.headers["content-type"])
    if options.get(b"charset", b"utf-8").lower() not in (b"utf-8", b"us-ascii"):  # of some, decoding takes for ever
        raise bad_request("the form is not in UTF-8")
    try:
        form = await request.form(max_files=MOST_PICTURES, max_fields=MOST_PICTURES, max_part_size=_MOST_JSON)
    except HTTPException as error:
        raise bad_request(f"the form is not valid: {error.detail}") from error
    files: list[PictureUpload] = []
    text: bytes | None = None
    for name, value in form.multi_items():
        if name == "picture" and isinstance(value, UploadFile):
            files.append(PictureUpload(value.filename or "", _Reader(value.file)))
        elif name == "request" and text is None:
            if isinstance(value, UploadFile) and (value.size or 0) > _MOST_JSON:
                raise Refusal(413, "too-large", f"the JSON has more than {_MOST_JSON:,} bytes")
            text = await value.read() if isinstance(value, UploadFile) else value.encode()
        else:
            raise bad_request(
                f"the form has a part {name[:60]!r}: its parts are request, once, and picture, with files"
            )
    if text is None:
        if not files:
            raise bad_request("the form has neither a picture nor a request")
        return RequestBody([asking.one()], False, files)
    return RequestBody(*await _parsed(text, asking), files)


async def _parsed(content: bytes, form: RequestParser[_RequestT]) -> tuple[Sequence[_RequestT], bool]:
    """See RequestParser.from_json. Much JSON takes so long that others are answered meanwhile."""
    if len(content) < _MUCH_JSON:
        return form.from_json(content)
    return await run_in_threadpool(form.from_json, content)


class _Reader:
    """Reads a file from its beginning. Several regions of one file are decoded in several threads."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._lock = threading.Lock()

    def __call__(self) -> bytes:
        with self._lock:
            self._file.seek(0)
            return self._file.read()
