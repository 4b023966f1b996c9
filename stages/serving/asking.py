"""The way of a question: pictures fetched and decoded, vectors computed, the library searched, the answer put together.

Questions that come at the same time share forward passes and products. One snapshot answers all of a question.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from stages.contract import StageError
from stages.framing import Pixels
from stages.knn.backend import Rows, Vectors
from stages.knn.topk import TopK
from stages.serving import answering
from stages.serving.answering import Picture, Search
from stages.serving.batching import Batcher, FullError
from stages.serving.decoding import Decoding, File, Turns
from stages.serving.failures import Refusal, busy
from stages.serving.fetching import Limits
from stages.serving.globs import FilterError
from stages.serving.metrics import Metrics
from stages.serving.questions import DEFAULT_K, AskedPicture, Question
from stages.serving.room import Room
from stages.serving.searching import Result
from stages.serving.snapshots import Snapshot, State

Value = TypeVar("Value")

_PICTURES_AT_ONCE = 32
"""As many as a forward pass takes: with more, some passes would be half empty while others wait."""

_SEARCHES_AT_ONCE = 64

_WAITING = 512
"""Questions that may wait for a step."""


@dataclass(frozen=True)
class _Given:
    """A search with its vectors, float32 (n, d), and the rows of those that are library pictures."""

    snapshot: Snapshot
    points: Vectors
    rows: Sequence[int | None]
    search: Search


class Asking:
    """Answers questions from the state of the moment. Belongs to one event loop."""

    def __init__(
        self, state: Callable[[], State], metrics: Metrics, limits: Limits, room: Room, longest: float
    ) -> None:
        """limits: of pictures that are fetched by URL. room: for the pictures of questions. longest: seconds for one
        question."""
        self._state = state
        self._metrics = metrics
        self._room = room
        self._longest = longest
        self._wording = ThreadPoolExecutor(1, "answer")
        self._decoding = Decoding(limits)
        sizes = metrics.batches
        self.features = Batcher[tuple[Snapshot, Pixels], Vectors](
            "features", _embedded, _PICTURES_AT_ONCE, _WAITING, sizes.labels("features").observe
        )
        self.searches = Batcher[_Given, Result](
            "search", _searched, _SEARCHES_AT_ONCE, _WAITING, sizes.labels("search").observe
        )

    async def close(self) -> None:
        """Ends all threads; those that fetch, within their limit of time."""
        await self.features.close()
        await self.searches.close()
        await self._decoding.close()
        await asyncio.to_thread(self._wording.shutdown, cancel_futures=True)

    def snapshot(self) -> Snapshot:
        """The snapshot that answers now. Raises Refusal while there is none."""
        state = self._state()
        if state.snapshot is not None:
            return state.snapshot
        if state.kind == "empty":
            raise Refusal(409, "empty", state.message)
        raise Refusal(503, state.kind, state.message, 2 if state.kind == "loading" else 10)

    async def answer(self, question: Question, files: Sequence[File], turns: Turns) -> dict[str, Any]:
        """The answer to a question. turns: those of its request. Raises Refusal."""
        snapshot = self.snapshot()
        asked = question.asked(len(files))
        search = Search(
            question.k or DEFAULT_K,
            question.metric or snapshot.library.facts.metric,
            question.combine,
            question.filter,
            question.max_distance,
            question.exact,
        )
        try:
            with self._room.asked(len(asked)):
                async with asyncio.timeout(self._longest):
                    return await self._answer(snapshot, search, asked, files, turns)
        except TimeoutError as error:
            raise Refusal(503, "too-slow", f"the answer took more than {self._longest:g} s: try again", 5) from error
        except FullError as error:
            raise busy() from error
        except FilterError as error:
            raise Refusal(400, "bad-filter", str(error)) from error
        except StageError as error:
            raise Refusal(422, "not-searchable", str(error)) from error

    async def _answer(
        self,
        snapshot: Snapshot,
        search: Search,
        asked: Sequence[AskedPicture],
        files: Sequence[File],
        turns: Turns,
    ) -> dict[str, Any]:
        seconds: dict[str, float] = {}
        async with self._timed("decode", seconds):
            seen = await _all([self._decoding.picture(snapshot, each, files, turns) for each in asked])
        async with self._timed("features", seconds):
            points = await self._points(snapshot, seen)
        async with self._timed("search", seconds):
            if search.filter:  # found once and kept, here so that searches of others go on meanwhile
                await self._decoding.run(lambda: snapshot.library.paths.rows(search.filter))
            rows = [picture.row for picture, _ in seen]
            given = _Given(snapshot, points, rows, search)
            found = await self.searches.ask(_together(given), given, len(points))
            pictures = [picture for picture, _ in seen]
            answer = partial(answering.answer, snapshot, search, pictures, points, found)
            whole = await asyncio.get_running_loop().run_in_executor(self._wording, answer)
        return {**whole, "seconds": {name: round(each, 6) for name, each in seconds.items()}}

    async def _points(self, snapshot: Snapshot, seen: Sequence[tuple[Picture, Pixels | None]]) -> Vectors:
        """The vectors, float32 (n, d), of pictures that are new, computed, and of those of the library, as it has
        them."""
        new = [pixels for _, pixels in seen if pixels is not None]
        computed = iter(await self.features.ask(snapshot.embedder, (snapshot, np.stack(new)), len(new)) if new else ())
        return np.stack(
            [
                snapshot.library.vectors(_rows(picture))[0] if pixels is None else next(computed)
                for picture, pixels in seen
            ]
        )

    @asynccontextmanager
    async def _timed(self, step: str, seconds: dict[str, float]) -> AsyncIterator[None]:
        began = time.perf_counter()
        yield
        seconds[step] = time.perf_counter() - began
        self._metrics.steps.labels(step).observe(seconds[step])


async def _all(works: Sequence[Coroutine[Any, Any, Value]]) -> list[Value]:
    """The results of all, in order; the first failure ends the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in works]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return [task.result() for task in tasks]


def _rows(picture: Picture) -> Rows:
    return np.array([picture.row], np.int64)


def _embedded(given: Sequence[tuple[Snapshot, Pixels]]) -> list[Vectors | Exception]:
    """The vectors of each, computed together."""
    vectors = given[0][0].embedder(np.concatenate([pixels for _, pixels in given]))
    ends = np.cumsum([len(pixels) for _, pixels in given])
    return list(np.split(vectors, ends[:-1]))


def _together(given: _Given) -> object:
    """Equal for searches that one product can answer."""
    search = given.search
    if len(given.points) > 1:
        return object()
    return given.snapshot.searching, search.metric, search.filter, search.exact


def _searched(given: Sequence[_Given]) -> list[Result | Exception]:
    first = given[0]
    if len(given) == 1:
        return [answering.search(first.snapshot, first.points, first.rows, first.search)]
    together = replace(first.search, k=max(each.search.k for each in given))
    points = np.concatenate([each.points for each in given])
    found = answering.single(first.snapshot, points, [row for each in given for row in each.rows], together)
    return [replace(found, topk=_part(found.topk, at, each.search.k)) for at, each in enumerate(given)]


def _part(found: TopK, at: int, k: int) -> TopK:
    """The answer of one query."""
    return TopK(found.distances[at : at + 1, :k], found.rows[at : at + 1, :k])
