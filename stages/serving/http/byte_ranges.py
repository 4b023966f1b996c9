"""Responses with stored bytes: all of them, one range, their headers alone, or word that the client has them already.

What RFC 9110 says of HEAD, Range, If-Range and If-None-Match. Knows neither pictures nor where bytes come from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import iterate_in_threadpool

from stages.serving.follow.refusals import Refusal
from stages.serving.http.json_responses import refused

ByteReader = Callable[[int, int], bytes | Iterator[bytes]]
"""Gives the bytes from an offset up to another one."""

_RANGE = re.compile(r"bytes=\s*([0-9]{0,18})-([0-9]{0,18})\s*", re.IGNORECASE)
"""One range. A request for several gets the whole, as one whose Range is of another unit or not valid."""


def not_modified(request: Request, headers: Mapping[str, str]) -> Response | None:
    """The response to a client that has the bytes with this ETag already, None if it has others."""
    known = {each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")}
    return Response(status_code=304, headers=dict(headers)) if known & {headers["ETag"], "*"} else None


def response(request: Request, size: int, read: ByteReader, media_type: str, headers: Mapping[str, str]) -> Response:
    """The response to GET or HEAD for so many bytes. headers: with their ETag."""
    known = {**headers, "Accept-Ranges": "bytes"}
    if request.method == "HEAD":
        return Response(media_type=media_type, headers=known | {"Content-Length": str(size)})
    start, stop, status = 0, size, 200
    if (found := _range(request, size, headers["ETag"])) is not None:
        start, stop = found
        if not 0 <= start < stop:
            response = refused(Refusal(416, "no-such-range", f"the file has {size:,} bytes, and none of that range"))
            response.headers["Content-Range"] = f"bytes */{size}"
            return response
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
