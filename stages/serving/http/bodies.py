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

from stages.serving.answer.decoding import File
from stages.serving.answer.questions import MOST_PICTURES, Pictured
from stages.serving.follow.failures import Refusal, bad
from stages.serving.http.forms import Form

Kind = TypeVar("Kind", bound=Pictured)

_IN_MEMORY = 1 << 20
_MOST_JSON = 1 << 20
_MUCH_JSON = 1 << 14
"""Bytes."""


@dataclass(frozen=True)
class Asked(Generic[Kind]):
    """What a request asks. several: whether its answer is a list."""

    questions: Sequence[Kind]
    several: bool
    files: Sequence[File]


async def asked(request: Request, form: Form[Kind]) -> Asked[Kind]:
    """The questions of a request. Raises Refusal."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return Asked(*await _parsed(await small(request, _MOST_JSON), form), [])
    if kind == "multipart/form-data":
        return await _multipart(request, form)
    if kind.startswith("image/") or kind == "application/octet-stream":
        question = form.from_parameters(request.query_params.multi_items())
        return Asked([question], False, [await _alone(request)])
    raise Refusal(
        415,
        "wrong-type",
        "send application/json, multipart/form-data with parts named picture, or a picture with its own type, "
        "such as image/jpeg",
    )


async def small(request: Request, most: int) -> bytes:
    """A body of at most so many bytes. Raises Refusal."""
    gathered = bytearray()
    async for piece in request.stream():
        gathered += piece
        if len(gathered) > most:
            raise Refusal(413, "too-large", f"the JSON has more than {most:,} bytes", close=True)
    return bytes(gathered)


async def _alone(request: Request) -> File:
    spool: IO[bytes] = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  closed when nothing refers to it
    async for piece in request.stream():
        spool.write(piece)
    if not spool.tell():
        raise bad("the body is empty: send the bytes of a picture")
    return File("", _Reader(spool))


async def _multipart(request: Request, asking: Form[Kind]) -> Asked[Kind]:
    _, options = parse_options_header(request.headers["content-type"])
    if options.get(b"charset", b"utf-8").lower() not in (b"utf-8", b"us-ascii"):  # of some, decoding takes for ever
        raise bad("the form is not in UTF-8")
    try:
        form = await request.form(max_files=MOST_PICTURES, max_fields=MOST_PICTURES, max_part_size=_MOST_JSON)
    except HTTPException as error:
        raise bad(f"the form is not valid: {error.detail}") from error
    files: list[File] = []
    text: bytes | None = None
    for name, value in form.multi_items():
        if name == "picture" and isinstance(value, UploadFile):
            files.append(File(value.filename or "", _Reader(value.file)))
        elif name == "request" and text is None:
            if isinstance(value, UploadFile) and (value.size or 0) > _MOST_JSON:
                raise Refusal(413, "too-large", f"the JSON has more than {_MOST_JSON:,} bytes")
            text = await value.read() if isinstance(value, UploadFile) else value.encode()
        else:
            raise bad(f"the form has a part {name[:60]!r}: its parts are request, once, and picture, with files")
    if text is None:
        if not files:
            raise bad("the form has neither a picture nor a request")
        return Asked([asking.one()], False, files)
    return Asked(*await _parsed(text, asking), files)


async def _parsed(content: bytes, form: Form[Kind]) -> tuple[Sequence[Kind], bool]:
    """See Form.from_json. Much JSON takes so long that others are answered meanwhile."""
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
