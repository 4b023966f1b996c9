"""The page that shows where a picture of the index came from; the program around the service makes it, if it can."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from concurrent.futures import Executor
from typing import Protocol

from fastapi.responses import HTMLResponse, Response

from stages.serving.follow.refusals import Refusal

_STYLE = re.compile(r"<style[^>]*>(.*?)</style>", re.DOTALL)


class TraceRenderer(Protocol):
    """Makes the pages of traces."""

    def page(self, id: str, path: str, at: str) -> str:
        """A self-contained page in HTML with the way of a picture, by its id and the true path of a source, at a
        commit of the index. Raises an exception whose text is a sentence for people."""
        ...


async def response(tracer: TraceRenderer | None, threads: Executor, id: str, path: str, at: str) -> Response:
    """The page, whose own styles alone are allowed. Raises Refusal."""
    if tracer is None:
        raise Refusal(
            404, "no-trace", f"this service cannot trace pictures: type `lookalike trace --picture {id} --at {at}`"
        )
    try:
        page = await asyncio.get_running_loop().run_in_executor(threads, tracer.page, id, path, at)
    except Exception as error:  # the command's errors are not known here
        raise Refusal(502, "not-traced", f"this picture cannot be traced: {error}") from error
    hashes = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in _STYLE.findall(page))
    allowed = " ".join(f"'sha256-{each}'" for each in hashes) or "'none'"
    policy = f"default-src 'none'; style-src {allowed}; img-src data:; base-uri 'none'; frame-ancestors 'none'"
    return HTMLResponse(page, headers={"Content-Security-Policy": policy, "Cache-Control": "private, no-cache"})
