"""The bodies of requests for searches: JSON, files with a question, or one picture alone. Answers nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile

from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException

from stages.serving import questions
from stages.serving.asking import File
from stages.serving.failures import Refusal, bad
from stages.serving.questions import MOST_PICTURES, Question

_IN_MEMORY = 1 << 20
_MOST_JSON = 1 << 20


@dataclass(frozen=True)
class Asked:
    """What a request asks. several: whether its answer is a list."""

    questions: Sequence[Question]
    several: bool
    files: Sequence[File]


async def asked(request: Request) -> Asked:
    """The questions of a request. Raises Refusal."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return Asked(*questions.from_json(await _small(request)), [])
    if kind == "multipart/form-data":
        return await _multipart(request)
    if kind.startswith("image/") or kind == "application/octet-stream":
        question = questions.from_parameters(request.query_params.multi_items())
        return Asked([question], False, [await _alone(request)])
    raise Refusal(
        415,
        "wrong-type",
        "send application/json, multipart/form-data with parts named picture, or a picture with its own type, "
        "such as image/jpeg",
    )


async def _small(request: Request) -> bytes:
    gathered = bytearray()
    async for piece in request.stream():
        gathered += piece
        if len(gathered) > _MOST_JSON:
            raise Refusal(413, "too-large", f"the JSON has more than {_MOST_JSON >> 20} MiB")
    return bytes(gathered)


async def _alone(request: Request) -> File:
    spool = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  closed when nothing refers to it
    async for piece in request.stream():
        spool.write(piece)
    if not spool.tell():
        raise bad("the body is empty: send the bytes of a picture")

    def read() -> bytes:
        spool.seek(0)
        return spool.read()

    return File("", read)


async def _multipart(request: Request) -> Asked:
    try:
        form = await request.form(max_files=MOST_PICTURES + 1, max_fields=MOST_PICTURES, max_part_size=_MOST_JSON)
    except MultiPartException as error:
        raise bad(f"the form is not valid: {error.message}") from error
    except Exception as error:
        if isinstance(getattr(error, "detail", None), str):  # Starlette's, for the same
            raise bad(f"the form is not valid: {error.detail}") from error  # type: ignore[attr-defined]
        raise
    files: list[File] = []
    text: bytes | None = None
    for name, value in form.multi_items():
        if name == "picture" and isinstance(value, UploadFile):
            files.append(File(value.filename or "", _reader(value)))
        elif name == "request" and text is None:
            text = await value.read() if isinstance(value, UploadFile) else value.encode()
        else:
            raise bad(f"the form has a part {name[:60]!r}: its parts are request, once, and picture, with files")
    if len(files) > MOST_PICTURES:
        raise bad(f"{len(files)} files: send at most {MOST_PICTURES}")
    if text is None:
        if not files:
            raise bad("the form has neither a picture nor a request")
        return Asked([Question()], False, files)
    return Asked(*questions.from_json(text), files)


def _reader(upload: UploadFile) -> Callable[[], bytes]:
    def read() -> bytes:
        upload.file.seek(0)
        return upload.file.read()

    return read
