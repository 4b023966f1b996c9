"""The way of a search: its pictures seen, the library searched, the answer put together.

Searches that come at the same time share products. One snapshot answers all of a question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from stages.backbone import text_points
from stages.datum.contract import load
from stages.datum.text_format import counted
from stages.files.path_globs import FilterError
from stages.files.question import Question
from stages.knn.backend import Vectors
from stages.knn.top_k import TopK
from stages.record.framing import Framing
from stages.serving.answer import near_duplicates, search_answer
from stages.serving.answer.batcher import Batcher
from stages.serving.answer.metrics import ServiceMetrics
from stages.serving.answer.near_duplicates import FoldedRanking
from stages.serving.answer.query_decoder import DecodeContext, DecodeSlots, PictureUpload
from stages.serving.answer.query_embedder import WAITING, QueryEmbedder
from stages.serving.answer.request_schema import PictureReference, SearchRequest
from stages.serving.follow.refusals import Refusal
from stages.serving.follow.snapshots import Snapshot, SnapshotState
from stages.serving.search.search_engine import SearchResult

_SEARCHES_AT_ONCE = 64

_FURTHER = 8
"""Times as many pictures are searched for where near-duplicates took the places of other groups."""

_ValueT = TypeVar("_ValueT")


@dataclass(frozen=True)
class _Given:
    """A search with its vectors, float32 (n, d), and the rows of those that are library pictures."""

    snapshot: Snapshot
    points: Vectors
    rows: Sequence[int | None]
    search: Question


class SearchHandler:
    """Answers searches from the state of the moment. Belongs to one event loop."""

    def __init__(
        self, state: Callable[[], SnapshotState[Snapshot]], metrics: ServiceMetrics, seeing: QueryEmbedder
    ) -> None:
        self._state = state
        self._seeing = seeing
        self._wording = ThreadPoolExecutor(1, "answer")
        self.searches = Batcher[_Given, SearchResult](
            "search", _searched, _SEARCHES_AT_ONCE, WAITING, metrics.batches.labels("search").observe
        )

    async def close(self) -> None:
        """Ends its threads."""
        await self.searches.close()
        await asyncio.to_thread(self._wording.shutdown, cancel_futures=True)

    def snapshot(self) -> Snapshot:
        """The snapshot that answers now. Raises Refusal while there is none."""
        return self._state().answering("empty")

    async def answer(
        self, question: SearchRequest, files: Sequence[PictureUpload], turns: DecodeSlots
    ) -> dict[str, Any]:
        """The answer to a question. turns: those of its request. Raises Refusal."""
        snapshot = self.snapshot()
        asked = question.asked(len(files))
        stated = _stated(snapshot, question)
        if snapshot.embedder is None:
            _require_vectors(snapshot, asked)
        async with self._seeing.answering(len(asked), "not-searchable"):
            if not question.of_pictures and snapshot.words is None:
                raise no_text_tower()  # before a picture is decoded for nothing
            if not question.exact:
                snapshot.searching.recall(question.metric)  # refuses before a picture is decoded for nothing
            try:
                return await self._answer(snapshot, question, stated, asked, files, turns)
            except FilterError as error:  # a StageError, too
                raise Refusal(400, "bad-filter", str(error)) from error

    async def _answer(
        self,
        snapshot: Snapshot,
        search: Question,
        stated: Vectors,
        asked: Sequence[PictureReference],
        files: Sequence[PictureUpload],
        turns: DecodeSlots,
    ) -> dict[str, Any]:
        seconds: dict[str, float] = {}
        async with self._seeing.timed("decode", seconds):
            seen = await self._seeing.pictures(_view(snapshot), asked, files, turns)
        async with self._seeing.timed("features", seconds):
            points = await self._seeing.vectors(snapshot.embedder, snapshot.library, seen) if seen else stated[:0]
            points = await self._with_words(snapshot, search, np.concatenate([points, stated]))
        async with self._seeing.timed("search", seconds):
            if search.filter or search.where:  # found once and kept, here so that searches of others go on meanwhile
                await self._seeing.run(lambda: snapshot.library.attributes.pictures(search.where, search.filter))
            own = [None if search.without else picture.row for picture, _ in seen]  # less words, it is no picture's
            rows = [*own, *[None] * (len(points) - len(own))]
            found, ranking = await self._ranked(_Given(snapshot, points, rows, search))
            pictures = [picture for picture, _ in seen]
            answer = partial(search_answer.answer, snapshot, search, pictures, points, found, ranking)
            whole = await self._worded(answer)
        return {**whole, "seconds": seconds}

    async def _with_words(self, snapshot: Snapshot, search: Question, points: Vectors) -> Vectors:
        """Points with that of a question's text behind them, all less what it is to be without."""
        if search.of_pictures:
            return points
        assert snapshot.words is not None
        said = [search.text] if search.text else []
        words = await self._seeing.words(snapshot.words, [*said, *search.without])
        return text_points.without(np.concatenate([points, words[: len(said)]]), words[len(said) :])

    async def _ranked(self, given: _Given) -> tuple[SearchResult, FoldedRanking]:
        """The nearest pictures, as many as it takes for k groups: first k, and more only where some are
        near-duplicates."""
        snapshot, asked = given.snapshot, given.search
        together, reach = _together(given), asked.k
        near = near_duplicates.largest_distance(snapshot.scale)
        while True:
            found = await self.searches.ask(together, given, len(given.points))
            fold = partial(near_duplicates.fold, snapshot.library, found.topk, asked.k, asked.max_distance, near=near)
            ranking = await self._worded(partial(fold, exhausted=found.topk.rows.shape[1] < reach))
            if ranking is not None:
                return found, ranking
            together, reach = object(), reach * _FURTHER
            given = replace(given, search=asked.model_copy(update={"k": reach}))

    async def _worded(self, work: Callable[[], _ValueT]) -> _ValueT:
        return await asyncio.get_running_loop().run_in_executor(self._wording, work)


def _view(snapshot: Snapshot) -> DecodeContext:
    origin = snapshot.library.origin
    return DecodeContext(Framing(origin.image_size, origin.fit), snapshot.library, snapshot.originals, True)


def no_text_tower() -> Refusal:
    """A question in words that the model does not have."""
    without_one = (
        "the page's search box, and GET /pictures?where=anywhere ILIKE '%snow%', find words in names and attributes"
    )
    return Refusal(422, "no-text-tower", f"{load('stages.backbone.text_tower').NO_WORDS}; {without_one} without one")


def _stated(snapshot: Snapshot, question: Question) -> Vectors:
    """The vector in a question, float32 (1, d), or none, (0, d). Raises Refusal for one of another length."""
    dimension = snapshot.library.origin.dimension
    if question.vector is None:
        return np.empty((0, dimension), np.float32)
    if len(question.vector) != dimension:
        raise Refusal(
            400,
            "wrong-dimension",
            f"the vector has {counted(len(question.vector), 'number', 'numbers')}, and those of the index have "
            f"{dimension}: ask with a vector of its model, {snapshot.library.origin.named}",
        )
    return np.array([question.vector], np.float32)


def _require_vectors(snapshot: Snapshot, asked: Sequence[PictureReference]) -> None:
    """Raises Refusal for a picture that has no vector in the library, where no model can compute one."""
    named = snapshot.library.origin.backbone
    for each in asked:
        if each.id is None or each.region is not None:
            raise Refusal(
                409,
                "no-model",
                f"the vectors are of {named}, which is not in the repo models: ask about whole pictures of the library "
                "by their id, or with a vector",
            )
        if snapshot.library.row(each.id) is None:
            raise Refusal(404, "no-vector", f"the picture {each.id} has no vector of {named}, or is not in the library")


def _together(given: _Given) -> object:
    """Equal for searches that one product can answer."""
    search = given.search
    if len(given.points) > 1:
        return object()
    return given.snapshot.searching, search.metric, search.filter, search.where, search.exact


def _searched(given: Sequence[_Given]) -> list[SearchResult | Exception]:
    first = given[0]
    if len(given) == 1:
        return [search_answer.search(first.snapshot, first.points, first.rows, first.search)]
    together = first.search.model_copy(update={"k": max(each.search.k for each in given)})
    points = np.concatenate([each.points for each in given])
    found = search_answer.search_each(first.snapshot, points, [row for each in given for row in each.rows], together)
    return [replace(found, topk=_part(found.topk, at, each.search.k)) for at, each in enumerate(given)]


def _part(found: TopK, at: int, k: int) -> TopK:
    """The answer of one query."""
    return TopK(found.distances[at : at + 1, :k], found.rows[at : at + 1, :k])
