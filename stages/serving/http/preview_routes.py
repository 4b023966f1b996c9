"""The routes of previews: pictures that a browser cannot show, as files that it can."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import FastAPI, Request, Response

from stages.serving.answer.query_decoder import PictureUpload
from stages.serving.answer.query_embedder import QueryEmbedder
from stages.serving.follow.snapshots import Snapshot
from stages.serving.http.library_routes import chosen_source
from stages.serving.http.response_writer import ResponseWriter

_CODE = "not-shown"
_FILE = {"type": "string", "format": "binary"}


class PreviewRoutes:
    """snapshot: gives that of the moment, or raises Refusal; None for a service without a library."""

    def __init__(
        self, snapshot: Callable[[], Snapshot] | None, seeing: QueryEmbedder, answered: ResponseWriter
    ) -> None:
        self._snapshot = snapshot
        self._seeing = seeing
        self._answered = answered

    def add_to(self, app: FastAPI) -> None:
        body = {"requestBody": {"required": True, "content": {"image/*": {"schema": _FILE}}}}
        app.post("/previews", tags=["search"], response_class=Response, openapi_extra=body)(self.of_upload)
        if self._snapshot is not None:
            app.get("/previews/{id}", tags=["library"], response_class=Response)(self.of_original)

    async def of_upload(self, request: Request) -> Response:
        """A picture, sent with its own type, as a JPEG file: upright, and at most 2,048 pixels wide and high."""
        return await self._answered.preview(request, self._preview)

    async def _preview(self, file: PictureUpload) -> bytes:
        async with self._seeing.answering(1, _CODE):
            return await self._seeing.preview(file)

    async def of_original(self, id: str, source: int = 0) -> Response:
        """The file that a picture came from, as such a JPEG file; of several sources the one with this number."""
        assert self._snapshot is not None
        snapshot = self._snapshot()
        chosen = chosen_source(snapshot, id, source)
        async with self._seeing.answering(1, _CODE):
            content = await self._seeing.original_preview(snapshot.originals, chosen)
        headers = {"ETag": f'"{chosen.sha256}"', "Cache-Control": "private, max-age=86400"}
        return Response(content, media_type="image/jpeg", headers=headers)
