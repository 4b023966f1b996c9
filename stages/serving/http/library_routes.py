"""The routes of what the library holds: thumbnails, original files, folders and traces.

Files are answered by what RFC 9110 says of HEAD, Range, If-Range and If-None-Match.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool

from stages.datum.contract import StageError
from stages.files.path_globs import FilterError
from stages.record.sources import Source
from stages.serving.answer import search_answer
from stages.serving.answer.query_embedder import QueryEmbedder
from stages.serving.follow.pachyderm_client import Absent
from stages.serving.follow.refusals import Refusal, bad_request
from stages.serving.follow.snapshots import Snapshot
from stages.serving.http import api_docs, trace_renderer
from stages.serving.http.json_responses import AsciiJSONResponse, refused
from stages.serving.http.response_models import LibraryBody
from stages.serving.http.trace_renderer import TraceRenderer

PageLimit = Annotated[int, Query(ge=1, le=500)]
"""Pictures, or folders, of a page of a listing."""

_ID = re.compile("[0-9a-f]{64}")

_INLINE = ("image/jpeg", "image/png", "image/gif", "image/webp", "image/avif")
"""Media types that browsers show and that hold no code."""

_ASKING = 8
"""Threads that ask Pachyderm for originals and traces, and as many for thumbnails, which must not wait for large files:
if it does not answer, only they wait."""

ByteReader = Callable[[int, int], bytes | Iterator[bytes]]
"""Gives the bytes from an offset up to another one."""

_RANGE = re.compile(r"bytes=\s*([0-9]{0,18})-([0-9]{0,18})\s*", re.IGNORECASE)
"""One range. A request for several gets the whole, as one whose Range is of another unit or not valid."""

_UNCHANGING = "private, max-age=31536000, immutable"


class LibraryRoutes:
    """Answers from the snapshot of the moment. snapshot: gives it, or raises Refusal. seeing: decodes originals.
    tracer: makes the pages of traces, where there is one."""

    def __init__(self, snapshot: Callable[[], Snapshot], seeing: QueryEmbedder, tracer: TraceRenderer | None) -> None:
        self._snapshot = snapshot
        self._seeing = seeing
        self._tracer = tracer
        self._asking = ThreadPoolExecutor(_ASKING, "pachyderm")
        self._showing = ThreadPoolExecutor(_ASKING, "thumbnails")

    def close(self) -> None:
        """Ends the threads, as soon as their calls of Pachyderm end."""
        for threads in (self._asking, self._showing):
            threads.shutdown(wait=False, cancel_futures=True)

    def add_to(self, app: FastAPI) -> None:
        for name, stored in (("images", self.image), ("originals", self.original), ("previews", self.preview)):
            kind = api_docs.JPEG if name != "originals" else api_docs.BYTES
            app.get(f"/{name}/{{id}}", tags=["library"], response_class=Response, responses=kind)(stored)
            app.head(f"/{name}/{{id}}", include_in_schema=False)(stored)
        app.get("/library", tags=["library"], response_model=LibraryBody)(self.library)
        app.get("/trace/{id}", tags=["library"], response_class=Response)(self.trace)

    async def image(self, id: str, request: Request) -> Response:
        """A picture's thumbnail, a JPEG file."""
        snapshot = self._snapshot()
        row = _row(snapshot, id)
        chosen = min(each.sha256 for each in snapshot.library.sources(row))  # the file that it was made from
        headers = {"ETag": f'"{id[:32]}{chosen[:32]}"', "Cache-Control": _UNCHANGING}
        if (unchanged := _not_modified(request, headers)) is not None:
            return unchanged
        try:
            content = await asyncio.get_running_loop().run_in_executor(self._showing, snapshot.library.thumbnail, row)
        except (Absent, StageError) as error:
            raise Refusal(404, "gone", f"the thumbnail cannot be read: {error}") from error
        return _whole(request, content, headers)

    async def original(self, id: str, request: Request, source: int = 0, download: bool = False) -> Response:
        """The file that a picture came from, as it was put; of several sources the one with this number."""
        snapshot = self._snapshot()
        chosen = source_of(snapshot, id, source)
        headers = {"ETag": f'"{chosen.sha256}"', "Cache-Control": "private, no-cache"}
        if (unchanged := _not_modified(request, headers)) is not None:
            return unchanged
        found = await asyncio.get_running_loop().run_in_executor(self._asking, snapshot.originals.open, chosen)
        shown = found.media_type in _INLINE and not download
        name = quote(found.name, safe="", errors="replace")
        headers |= {
            "Content-Disposition": f"{'inline' if shown else 'attachment'}; filename*=UTF-8''{name}",
            "Content-Security-Policy": "default-src 'none'; sandbox",
        }
        response = _bytes_response(request, found.size, found.read, found.media_type, headers)
        if not isinstance(response, StreamingResponse):
            found.close()
        return response

    async def preview(self, id: str, request: Request, source: int = 0) -> Response:
        """The same file as a JPEG file, upright and at most 2,048 pixels wide and high, as every browser shows it."""
        snapshot = self._snapshot()
        chosen = source_of(snapshot, id, source)
        headers = {"ETag": f'"{chosen.sha256}"', "Cache-Control": "private, max-age=86400"}
        if (unchanged := _not_modified(request, headers)) is not None:
            return unchanged
        return _whole(request, await self._seeing.original_preview(snapshot.originals, chosen), headers)

    async def library(self, folder: str = "", after: str | None = None, limit: PageLimit = 100) -> Response:
        """A page of a folder of the library: its folders, then its pictures."""
        try:
            return AsciiJSONResponse(await run_in_threadpool(_page, self._snapshot(), folder, after, limit))
        except FilterError as error:
            raise bad_request(str(error)) from error

    async def trace(self, id: str, path: str = "") -> Response:
        """A page with the way of a picture, from its file to the index."""
        snapshot = self._snapshot()
        sources = snapshot.library.sources(_row(snapshot, id))
        if path and path not in {each.path for each in sources}:
            raise Refusal(404, "not-in-library", f"the picture {id} does not come from {path[:200]}")
        return await trace_renderer.response(
            self._tracer, self._asking, id, path or sources[0].path, snapshot.commits.index
        )


def _page(snapshot: Snapshot, folder: str, after: str | None, limit: int) -> dict[str, Any]:
    found = snapshot.library.paths.listing(folder, after, limit)
    return {
        **found,
        "pictures": [search_answer.listed_picture(snapshot, each.row, each.path) for each in found["pictures"]],
        "commits": snapshot.commits.as_data(),
    }


def _whole(request: Request, content: bytes, headers: Mapping[str, str]) -> Response:
    """The response with a JPEG file."""
    return _bytes_response(request, len(content), lambda start, stop: content[start:stop], "image/jpeg", headers)


def source_of(snapshot: Snapshot, id: str, number: int) -> Source:
    """The source of a picture with this number. Raises Refusal."""
    sources = snapshot.library.sources(_row(snapshot, id))
    if not 0 <= number < len(sources):
        raise bad_request(f"source {number}: this picture has {len(sources)}, counted from 0")
    return sources[number]


def _row(snapshot: Snapshot, id: str) -> int:
    row = snapshot.library.row(id) if _ID.fullmatch(id) else None
    if row is None:
        raise Refusal(404, "not-in-library", f"the library does not have a picture {id[:80]}: was it removed?")
    return row


def _not_modified(request: Request, headers: Mapping[str, str]) -> Response | None:
    """The response to a client that has the bytes with this ETag already, None if it has others."""
    known = {each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")}
    return Response(status_code=304, headers=dict(headers)) if known & {headers["ETag"], "*"} else None


def _bytes_response(
    request: Request, size: int, read: ByteReader, media_type: str, headers: Mapping[str, str]
) -> Response:
    """The response to GET or HEAD for so many bytes. headers: with their ETag."""
    known = {**headers, "Accept-Ranges": "bytes"}
    if request.method == "HEAD":
        return Response(media_type=media_type, headers=known | {"Content-Length": str(size)})
    start, stop, status = 0, size, 200
    if (found := _range(request, size, headers["ETag"])) is not None:
        start, stop = found
        if not 0 <= start < stop:
            none = refused(Refusal(416, "no-such-range", f"the file has {size:,} bytes, and none of that range"))
            none.headers["Content-Range"] = f"bytes */{size}"
            return none
        known["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        status = 206
    content = read(start, stop)
    if isinstance(content, bytes):
        return Response(content, status, known, media_type)
    known["Content-Length"] = str(stop - start)
    return StreamingResponse(iterate_in_threadpool(content), status, known, media_type)


def _range(request: Request, size: int, etag: str) -> tuple[int, int] | None:
    """The first byte that is asked for and the one after the last; None for the whole. The first is not below the other
    where the file has no byte of the range."""
    found = _RANGE.fullmatch(request.headers.get("range", ""))
    if found is None or request.headers.get("if-range", etag) != etag:
        return None
    first, last = found.groups()
    if first:
        if last and int(last) < int(first):
            return None
        return int(first), min(int(last) + 1, size) if last else size
    return (max(0, size - int(last)) if int(last) else size, size) if last else None
