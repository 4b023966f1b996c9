"""The files of the page, read once and sent from memory. Knows nothing of what is in them."""

from __future__ import annotations

import hashlib
from functools import partial
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
        path.relative_to(directory).as_posix(): _read(path) for path in directory.rglob("*.*") if path.suffix in _TYPES
    }

    async def asset(name: str, request: Request) -> Response:
        if name not in files:
            raise Refusal(404, "not-found", f"there is nothing at /assets/{name[:80]}")
        content, headers = files[name]
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers)

    app.get("/", include_in_schema=False)(partial(asset, "index.html"))
    app.get("/favicon.ico", include_in_schema=False)(partial(asset, "icon.svg"))
    app.get("/assets/{name:path}", include_in_schema=False)(asset)


def _read(path: Path) -> tuple[bytes, dict[str, str]]:
    """The content of a file, and its headers. It is asked for again each time: all files of the page are of one
    version."""
    content = path.read_bytes()
    tag = hashlib.sha256(content).hexdigest()[:32]
    return content, {"ETag": f'"{tag}"', "Cache-Control": "no-cache", "Content-Type": _TYPES[path.suffix]}
