"""The pictures of questions: fetched and decoded, a few at a time, or found in the library.

Files come from anywhere, and a decoder may crash: it does so in a process of its own, and the service answers on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from stages.decode.decoder_processes import DecoderProcesses
from stages.files import url_fetcher
from stages.files.url_fetcher import FetchError, FetchLimits
from stages.record.framing import Framing, Pixels
from stages.record.sources import Source
from stages.serving.answer import upload_decoder
from stages.serving.answer.request_schema import PictureReference
from stages.serving.answer.search_answer import QueryPicture
from stages.serving.follow.original_files import OriginalFiles, SourceGoneError
from stages.serving.follow.pachyderm_client import PachydermError
from stages.serving.follow.refusals import Refusal
from stages.serving.search.mapped_library import MappedLibrary

_ValueT = TypeVar("_ValueT")

_DECODERS = 2
"""Processes, and pictures of one request that are decoded or next: a large request does not keep others waiting."""

_FETCHERS = 8

SeenPicture = tuple[QueryPicture, Pixels | None]
"""A picture and its pixels; None for one of the library whose vector is used."""

DecodeSlots = asyncio.Semaphore


def decode_slots() -> DecodeSlots:
    """Those of a request."""
    return DecodeSlots(_DECODERS)


@dataclass(frozen=True)
class PictureUpload:
    """An uploaded file. read: its content, which may be on disk."""

    name: str
    read: Callable[[], bytes]


@dataclass(frozen=True)
class DecodeContext:
    """How the pictures of a question are seen. framing: of their pixels. library: where pictures are asked about by id
    and uploads are recognised, if their pixels are framed in the same way; None without one. originals: the files of
    its pictures. has_vectors: whether the library's vectors are used for these, and only their regions are decoded."""

    framing: Framing
    library: MappedLibrary | None
    originals: OriginalFiles | None = None
    has_vectors: bool = False


class QueryDecoder:
    """Fetches in threads, and decodes in processes. Belongs to one event loop."""

    def __init__(self, limits: FetchLimits, program: Sequence[str] = ()) -> None:
        """limits: of pictures that are fetched by URL. program: starts a decoder, for tests."""
        self._limits = limits
        self._decoders = DecoderProcesses(_DECODERS, program)
        self._decoding = ThreadPoolExecutor(_DECODERS, "decode")
        self._fetching = ThreadPoolExecutor(_FETCHERS, "fetch")
        self._fetched = asyncio.Semaphore(_FETCHERS)  # files fetched and not decoded yet are in memory

    async def close(self) -> None:
        """Ends the processes and the threads; those that fetch, within their limit of time."""
        self._fetching.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._decoding.shutdown, cancel_futures=True)
        await asyncio.to_thread(self._decoders.close)

    async def run(self, work: Callable[[], _ValueT]) -> _ValueT:
        """The result of other work, in a thread that decodes."""
        return await self._in(self._decoding, work)

    async def picture(
        self, view: DecodeContext, asked: PictureReference, files: Sequence[PictureUpload], turns: DecodeSlots
    ) -> SeenPicture:
        """A picture and its pixels."""
        if asked.id is not None:
            return await self._of_library(view, asked, asked.id, turns)
        if asked.url is not None:
            async with self._fetched:
                content = await self._in(self._fetching, partial(_fetched, asked.url, self._limits))
                return await self._decoded(view, asked, PictureUpload(asked.url, lambda: content), turns)
        assert asked.upload is not None
        return await self._decoded(view, asked, files[asked.upload], turns)

    async def preview(self, file: PictureUpload) -> bytes:
        """See stages.serving.answer.upload_decoder.preview."""
        return await self.run(lambda: upload_decoder.preview(file.read(), self._decoders.normalise))

    async def original_preview(self, originals: OriginalFiles, source: Source) -> bytes:
        """The same of the file of a source."""
        async with self._original(originals, source) as file:
            return await self.preview(file)

    async def _decoded(
        self, view: DecodeContext, asked: PictureReference, file: PictureUpload, turns: DecodeSlots
    ) -> SeenPicture:
        normalise = self._decoders.normalise
        async with turns:
            picture, pixels = await self.run(
                lambda: upload_decoder.decode_upload(file.name, file.read(), view.framing, asked.region, normalise)
            )
        row = view.library.row(picture.id) if view.library is not None else None
        return replace(picture, row=row), pixels

    async def _of_library(
        self, view: DecodeContext, asked: PictureReference, id: str, turns: DecodeSlots
    ) -> SeenPicture:
        library, originals = view.library, view.originals
        if library is None:
            raise Refusal(404, "not-in-library", "this service has no library: upload the picture, or name its url")
        row = library.row(id)
        if row is None:
            raise Refusal(404, "not-in-library", f"the library does not have a picture {id}: was it removed?")
        source = library.sources(row)[0]
        picture = QueryPicture(source.path, id, row, library.hash(row), source.width, source.height)
        if view.has_vectors and asked.region is None:
            return picture, None
        assert originals is not None
        async with self._original(originals, source) as file:
            region, pixels = await self._decoded(view, asked, file, turns)
        return picture if asked.region is None else region, pixels

    @asynccontextmanager
    async def _original(self, originals: OriginalFiles, source: Source) -> AsyncIterator[PictureUpload]:
        async with self._fetched:
            try:
                content = await self._in(self._fetching, lambda: b"".join(originals.open(source).chunks))
            except SourceGoneError as error:
                raise Refusal(404, "gone", str(error)) from error
            except PachydermError as error:
                raise Refusal(503, "no-pachyderm", f"{error}: try again", 5) from error
            yield PictureUpload(source.path, lambda: content)

    async def _in(self, threads: Executor, work: Callable[[], _ValueT]) -> _ValueT:
        return await asyncio.get_running_loop().run_in_executor(threads, work)


def _fetched(url: str, limits: FetchLimits) -> bytes:
    """The file at a URL. Raises Refusal."""
    try:
        return url_fetcher.fetch(url, limits)
    except FetchError as error:
        raise Refusal(error.status, error.code, error.message) from error
