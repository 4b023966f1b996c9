"""The route that gives several original files as one zip archive, in the order in which they are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from stages.datum.text_format import size
from stages.files import path_masks
from stages.files.path_globs import FilterError
from stages.record.sources import Source
from stages.serving.follow.original_files import OriginalFiles, SourceGoneError
from stages.serving.follow.pachyderm_client import PachydermError
from stages.serving.follow.refusals import Refusal, bad_request
from stages.serving.follow.snapshots import Snapshot
from stages.serving.http import stored_zip
from stages.serving.http.library_routes import source_of
from stages.serving.http.stored_zip import MOST_BYTES, MOST_MEMBERS, ZipMember

_AT_ONCE = 4
"""Archives that are read from Pachyderm at a time; the others wait."""

_FORM = {
    "type": "object",
    "properties": {
        "id": {"type": "array", "items": {"type": "string"}, "maxItems": MOST_MEMBERS},
        "filter": {"type": "string"},
    },
}


class DownloadRoutes:
    """Answers from the snapshot of the moment, which `snapshot` gives, or raises Refusal."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot
        self._reading = ThreadPoolExecutor(_AT_ONCE, "zip")

    def close(self) -> None:
        """Ends the threads."""
        self._reading.shutdown(wait=False, cancel_futures=True)

    def add_to(self, app: FastAPI) -> None:
        parameters = [{"name": name, "in": "query", "schema": each} for name, each in _FORM["properties"].items()]
        body = {"content": {"application/x-www-form-urlencoded": {"schema": _FORM}}}
        app.get("/zip", tags=["library"], response_class=Response, openapi_extra={"parameters": parameters})(self.zip)
        app.post("/zip", tags=["library"], response_class=Response, openapi_extra={"requestBody": body})(self.zip)

    async def zip(self, request: Request) -> Response:
        """Original files as one zip archive: of each `id` in turn (`id=9f3c…`, or `id=9f3c…:1` for another of its
        sources), or of the pictures that `filter` admits, one file of each, by path. At most 2,000 files and 4 GB. What
        cannot be had any more is listed in its MISSING.txt."""
        snapshot = self._snapshot()
        asked = await _asked(request)
        try:
            found = await run_in_threadpool(_files, snapshot, asked)
        except FilterError as error:
            raise Refusal(400, "bad-filter", str(error)) from error
        headers = {"Content-Disposition": 'attachment; filename="pictures.zip"', "Cache-Control": "private, no-cache"}
        pieces = stored_zip.archive(_members(snapshot.originals, found))
        return StreamingResponse(self._pieces(pieces), headers=headers, media_type="application/zip")

    async def _pieces(self, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        while piece := await loop.run_in_executor(self._reading, next, pieces, b""):
            yield piece


async def _asked(request: Request) -> list[tuple[str, str]]:
    """The fields of a request, in its address or its form."""
    if request.method == "GET":
        return request.query_params.multi_items()
    try:
        form = await request.form(max_files=0, max_fields=MOST_MEMBERS + 10)
    except HTTPException as error:
        raise bad_request(f"the form is not valid: {error.detail}") from error
    return [(name, value) for name, value in form.multi_items() if isinstance(value, str)]


def _files(snapshot: Snapshot, asked: Sequence[tuple[str, str]]) -> list[Source]:
    """The files that are asked for. Raises Refusal and FilterError."""
    if unknown := {name for name, _ in asked} - _FORM["properties"].keys():
        raise bad_request(
            f"{min(unknown)[:80]} is not a field of a download: they are {', '.join(_FORM['properties'])}"
        )
    texts: dict[str, Any] = dict(asked)
    named = [value for name, value in asked if name == "id"]
    if bool(named) == ("filter" in texts):
        raise bad_request("name each picture by id, or all that a filter admits (filter= for the whole library)")
    found = [_named(snapshot, each) for each in named] if named else _admitted(snapshot, texts["filter"])
    whole = sum(each.bytes for each in found)
    if len(found) > MOST_MEMBERS or whole > MOST_BYTES:
        raise _too_large(f"{len(found):,} files with {size(whole)}")
    return found


def _named(snapshot: Snapshot, name: str) -> Source:
    id, _, number = name.partition(":")
    if number and not (number.isascii() and number.isdigit() and len(number) < 9):
        raise bad_request(f"the number of a source is a whole number, not {number[:20]}")
    return source_of(snapshot, id, int(number or 0))


def _admitted(snapshot: Snapshot, filter: str) -> list[Source]:
    """Of each picture that a filter admits the first file inside it, by path."""
    paths = snapshot.library.paths
    rows, meant = paths.rows(filter).nonzero()[0].tolist(), paths.meant(filter)
    if len(rows) > MOST_MEMBERS:
        raise _too_large(f"{len(rows):,} pictures")
    found = (snapshot.library.sources(row) for row in rows)
    return sorted(sources[path_masks.inside_first(sources, meant)[0]] for sources in found)


def _too_large(what: str) -> Refusal:
    most = f"one archive holds at most {MOST_MEMBERS:,} files with {size(MOST_BYTES)}"
    return Refusal(413, "too-large", f"these are {what}: {most}")


def _members(originals: OriginalFiles, sources: Sequence[Source]) -> Iterator[ZipMember | str]:
    for source in sources:
        try:
            file = originals.open(source)
        except (SourceGoneError, PachydermError) as error:
            yield f"{source.path}: {error}"
            continue
        name = source.path.rpartition("/")[0] + "/" + file.name
        yield ZipMember(name, source.taken, file.size, file.crc, file.chunks)
