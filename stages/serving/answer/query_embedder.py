"""The pictures of questions on their way to numbers: fetched, decoded, and their vectors computed.

Questions of both kinds that come at the same time share the threads, the forward passes and the bounds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stages.datum.contract import StageError
from stages.files.url_fetcher import FetchLimits
from stages.knn.backend import Vectors
from stages.record.framing import Pixels
from stages.record.sources import Source
from stages.serving.answer.batcher import Batcher, QueueFullError
from stages.serving.answer.load_limiter import LoadLimiter
from stages.serving.answer.metrics import ServiceMetrics
from stages.serving.answer.query_decoder import DecodeContext, DecodeSlots, PictureUpload, QueryDecoder, SeenPicture
from stages.serving.answer.request_schema import PictureReference
from stages.serving.answer.search_answer import QueryPicture
from stages.serving.follow.original_files import OriginalFiles
from stages.serving.follow.refusals import Refusal, service_busy
from stages.serving.search.mapped_library import MappedLibrary

if TYPE_CHECKING:  # it imports TensorFlow, and the service listens before that
    from stages.backbone.embedder import Embedder
    from stages.backbone.text_tower import TextTower

_ValueT = TypeVar("_ValueT")

_PICTURES_AT_ONCE = 32
"""As many as a forward pass takes: with more, some passes would be half empty while others wait."""

_TEXTS_AT_ONCE = 16

WAITING = 512
"""Questions that may wait for a step."""


class QueryEmbedder:
    """Fetches, decodes and embeds. Belongs to one event loop."""

    def __init__(self, metrics: ServiceMetrics, limits: FetchLimits, room: LoadLimiter, longest: float) -> None:
        """limits: of pictures that are fetched by URL. room: for the pictures of questions. longest: seconds for one
        question."""
        self._metrics = metrics
        self._room = room
        self._longest = longest
        self._decoding = QueryDecoder(limits)
        self.run = self._decoding.run
        self.features = Batcher[tuple["Embedder", Pixels], Vectors](
            "features", computed_together, _PICTURES_AT_ONCE, WAITING, metrics.batches.labels("features").observe
        )

        self._texts = Batcher[tuple[Callable[[NDArray[Any]], Vectors], NDArray[np.object_]], Vectors](
            "texts", computed_together, _TEXTS_AT_ONCE, WAITING, metrics.batches.labels("texts").observe
        )

    async def close(self) -> None:
        """Ends all threads; those that fetch, within their limit of time."""
        await self._texts.close()
        await self.features.close()
        await self._decoding.close()

    @asynccontextmanager
    async def answering(self, pictures: int, code: str) -> AsyncIterator[None]:
        """The bounds of one question with so many pictures, and its failures as Refusal. code: of a StageError."""
        try:
            with self._room.pictures.room(pictures):
                async with asyncio.timeout(self._longest):
                    yield
        except TimeoutError as error:
            raise Refusal(503, "too-slow", f"the answer took more than {self._longest:g} s: try again", 5) from error
        except QueueFullError as error:
            raise service_busy() from error
        except StageError as error:
            raise Refusal(422, code, str(error)) from error

    @asynccontextmanager
    async def timed(self, step: str, seconds: dict[str, float]) -> AsyncIterator[None]:
        """Measures a step of an answer."""
        began = time.perf_counter()
        yield
        seconds[step] = round(time.perf_counter() - began, 6)
        self._metrics.steps.labels(step).observe(seconds[step])

    async def pictures(
        self, view: DecodeContext, asked: Sequence[PictureReference], files: Sequence[PictureUpload], turns: DecodeSlots
    ) -> Sequence[SeenPicture]:
        """The pictures of a question with their pixels; see QueryDecoder.picture. Raises Refusal, which names each of
        several that cannot be asked about."""
        seen = await _all([_seen(self._decoding.picture(view, each, files, turns)) for each in asked])
        bad = {place: each for place, each in enumerate(seen) if isinstance(each, Refusal)}
        if bad:
            first, reasons = next(iter(bad.values())), {place: each.message for place, each in bad.items()}
            several = Refusal(first.status, first.code, "; ".join(reasons.values()), pictures=reasons)
            raise several if len(asked) > 1 else first
        return [each for each in seen if not isinstance(each, Refusal)]

    async def preview(self, file: PictureUpload) -> bytes:
        """See stages.serving.answer.upload_decoder.preview."""
        async with self.answering(1, "not-shown"):
            return await self._decoding.preview(file)

    async def original_preview(self, originals: OriginalFiles, source: Source) -> bytes:
        """The same of the file of a source."""
        async with self.answering(1, "not-shown"):
            return await self._decoding.original_preview(originals, source)

    async def vectors(
        self, embedder: Embedder | None, library: MappedLibrary | None, seen: Sequence[SeenPicture]
    ) -> Vectors:
        """The vectors of pictures, float32 (n, d): computed, or, of those without pixels, as the library has them."""
        new = [pixels for _, pixels in seen if pixels is not None]
        computed: Iterator[Any] = iter(())
        if new:
            assert embedder is not None  # SearchHandler refuses such pictures
            computed = iter(await self.features.ask(embedder, (embedder, np.stack(new)), len(new)))
        return np.stack([next(computed) if pixels is not None else _known(library, each) for each, pixels in seen])

    async def words(self, tower: TextTower, texts: Sequence[str]) -> Vectors:
        """The vectors of n texts, at least one, float32 (n, d)."""

        def embed(rows: NDArray[Any]) -> Vectors:
            return tower.embed(rows.tolist())

        return await self._texts.ask(tower, (embed, np.array(texts, np.object_)), len(texts))


async def _all(works: Sequence[Coroutine[Any, Any, _ValueT]]) -> list[_ValueT]:
    """The results of all, in order; the first failure ends the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in works]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return [task.result() for task in tasks]


async def _seen(work: Awaitable[SeenPicture]) -> SeenPicture | Refusal:
    """A picture, or why it cannot be asked about. Raises Refusal for what is the service's doing."""
    try:
        return await work
    except Refusal as refusal:
        if refusal.status >= 500:
            raise
        return refusal


def _known(library: MappedLibrary | None, picture: QueryPicture) -> Vectors:
    assert library is not None and picture.row is not None
    found: Vectors = library.vectors(np.array([picture.row], np.int64))[0]
    return found


def computed_together(
    given: Sequence[tuple[Callable[[NDArray[Any]], Vectors], NDArray[Any]]],
) -> list[Vectors | Exception]:
    """What one model makes of the rows of each, in one call."""
    computed = given[0][0](np.concatenate([rows for _, rows in given]))
    ends = np.cumsum([len(rows) for _, rows in given])
    return list(np.split(computed, ends[:-1]))
