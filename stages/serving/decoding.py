"""The pictures of questions: fetched and decoded, a few at a time, or found in the library."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from stages.framing import Framing, Pixels
from stages.serving import fetching, uploads
from stages.serving.answering import Picture
from stages.serving.failures import Refusal
from stages.serving.fetching import Limits
from stages.serving.questions import AskedPicture
from stages.serving.snapshots import Snapshot

Value = TypeVar("Value")

_DECODERS = 2
"""Threads, and pictures of one request that are decoded or next: a large request does not keep others waiting."""

_FETCHERS = 8

Turns = asyncio.Semaphore


def turns() -> Turns:
    """Those of a request."""
    return Turns(_DECODERS)


@dataclass(frozen=True)
class File:
    """An uploaded file. read: its content, which may be on disk."""

    name: str
    read: Callable[[], bytes]


class Decoding:
    """Fetches and decodes in threads. Belongs to one event loop."""

    def __init__(self, limits: Limits) -> None:
        """limits: of pictures that are fetched by URL."""
        self._limits = limits
        self._decoding = ThreadPoolExecutor(_DECODERS, "decode")
        self._fetching = ThreadPoolExecutor(_FETCHERS, "fetch")
        self._fetched = asyncio.Semaphore(_FETCHERS)  # files fetched and not decoded yet are in memory

    async def close(self) -> None:
        """Ends the threads; those that fetch, within their limit of time."""
        self._fetching.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._decoding.shutdown, cancel_futures=True)

    async def run(self, work: Callable[[], Value]) -> Value:
        """The result of other work, in a thread that decodes."""
        return await self._in(self._decoding, work)

    async def picture(
        self, snapshot: Snapshot, asked: AskedPicture, files: Sequence[File], turns: Turns
    ) -> tuple[Picture, Pixels | None]:
        """A picture and its pixels; None for one of the library, whose vector is known."""
        if asked.id is not None:
            return _of_library(snapshot, asked.id), None
        if asked.url is not None:
            async with self._fetched:
                content = await self._in(self._fetching, partial(fetching.fetch, asked.url, self._limits))
                return await self._decoded(snapshot, asked, File(asked.url, lambda: content), turns)
        assert asked.upload is not None
        return await self._decoded(snapshot, asked, files[asked.upload], turns)

    async def _decoded(
        self, snapshot: Snapshot, asked: AskedPicture, file: File, turns: Turns
    ) -> tuple[Picture, Pixels]:
        name, facts = file.name, snapshot.library.facts
        framing = Framing(facts.image_size, facts.fit)
        async with turns:
            seen = await self.run(lambda: uploads.seen(name, file.read(), framing, asked.region))
        row = snapshot.library.row(seen.id)
        return Picture(name, seen.id, row, seen.hash, seen.width, seen.height), seen.pixels

    async def _in(self, threads: Executor, work: Callable[[], Value]) -> Value:
        return await asyncio.get_running_loop().run_in_executor(threads, work)


def _of_library(snapshot: Snapshot, id: str) -> Picture:
    library = snapshot.library
    row = library.row(id)
    if row is None:
        raise Refusal(404, "not-in-library", f"the library does not have a picture {id}: was it removed?")
    source = library.sources(row)[0]
    return Picture(source.path, id, row, library.hash(row), source.width, source.height)
