"""The files of the page, read once and sent from memory. Knows nothing of what is in them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fastapi import FastAPI, Request, Response

from stages.serving.follow.refusals import Refusal

PAGE = Path(__file__).parents[1] / "page"

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webp": "image/webp",
}


def add_to(app: FastAPI, directory: Path = PAGE) -> None:
    """Adds the routes of the page and of its files."""
    files = {
        path.relative_to(directory).as_posix(): _Asset(path) for path in directory.rglob("*.*") if path.suffix in _TYPES
    }

    async def asset(name: str, request: Request) -> Response:
        if name not in files:
            raise Refusal(404, "not-found", f"there is nothing at /assets/{name[:80]}")
        return files[name].response(request)

    async def page(request: Request) -> Response:
        return await asset("index.html", request)

    async def icon(request: Request) -> Response:
        return await asset("icon.svg", request)

    app.get("/", include_in_schema=False)(page)
    app.get("/favicon.ico", include_in_schema=False)(icon)
    app.get("/assets/{name:path}", include_in_schema=False)(asset)


class _Asset:
    def __init__(self, path: Path) -> None:
        self._content = path.read_bytes()
        self._type = _TYPES[path.suffix]
        # Asked for again each time: all files of the page are of one version.
        tag = hashlib.sha256(self._content).hexdigest()[:32]
        self._headers = {"ETag": f'"{tag}"', "Cache-Control": "no-cache"}

    def response(self, request: Request) -> Response:
        if request.headers.get("if-none-match") == self._headers["ETag"]:
            return Response(status_code=304, headers=self._headers)
        return Response(self._content, media_type=self._type, headers=self._headers)
