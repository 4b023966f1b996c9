"""The routes of what the library holds by attributes: facets, listings without a query, and places."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Query, Response

from stages.files import path_globs
from stages.files.path_globs import FilterError
from stages.files.question import LONGEST_WHERE, describe
from stages.serving.answer import attribute_answer
from stages.serving.follow.refusals import Refusal, bad_request
from stages.serving.follow.snapshots import Snapshot
from stages.serving.http.json_responses import AsciiJSONResponse
from stages.serving.http.library_routes import MOST_LISTED
from stages.serving.http.response_models import FacetsBody, PicturesBody, PlacesBody

_FoundT = TypeVar("_FoundT")

_COUNTING = 2
"""Threads: each filter takes memory."""

WhereParameter = Annotated[str, Query(max_length=LONGEST_WHERE, description=describe("where"))]
FilterParameter = Annotated[str, Query(max_length=path_globs.LONGEST, description=describe("filter"))]


class AttributeRoutes:
    """Answers from the snapshot of the moment. snapshot: gives it, or raises Refusal."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot
        self._counting = ThreadPoolExecutor(_COUNTING, "attributes")

    def close(self) -> None:
        """Ends the threads."""
        self._counting.shutdown(wait=False, cancel_futures=True)

    def add_to(self, app: FastAPI) -> None:
        app.get("/facets", tags=["library"], response_model=FacetsBody)(self.facets)
        app.get("/pictures", tags=["library"], response_model=PicturesBody)(self.pictures)
        app.get("/places", tags=["library"], response_model=PlacesBody)(self.places)

    async def facets(self, where: WhereParameter = "", filter: FilterParameter = "", columns: str = "") -> Response:
        """How many pictures have each value of a column, for columns separated by commas, by default those that people
        want to see. Counts what each value would leave of the pictures that the filters admit."""
        names = [each.strip().lower() for each in columns.split(",") if each.strip()]
        return await self._answered(lambda held: attribute_answer.facets(held, where, filter, names))

    async def pictures(
        self,
        where: WhereParameter = "",
        filter: FilterParameter = "",
        sort: str = "name",
        after: str | None = None,
        limit: int = 100,
    ) -> Response:
        """A page of the pictures that the filters admit, by name or date taken (sort=taken), or backwards (-taken)."""
        if not 1 <= limit <= MOST_LISTED:
            raise bad_request(f"limit must be 1 to {MOST_LISTED}")
        return await self._answered(lambda held: attribute_answer.pictures(held, where, filter, sort, after, limit))

    async def places(self, where: WhereParameter = "", filter: FilterParameter = "") -> Response:
        """Where the pictures that the filters admit were taken: clusters, each with the id of one of its pictures."""
        return await self._answered(lambda held: attribute_answer.places(held, where, filter))

    async def _answered(self, answer: Callable[[Snapshot], dict[str, Any]]) -> Response:
        snapshot = self._snapshot()
        return AsciiJSONResponse(await filtered(self._counting, lambda: answer(snapshot)))


async def filtered(threads: ThreadPoolExecutor, work: Callable[[], _FoundT]) -> _FoundT:
    """The result of work with filters, in one of some threads. Raises Refusal for a filter that is not valid."""
    try:
        return await asyncio.get_running_loop().run_in_executor(threads, work)
    except FilterError as error:
        raise Refusal(400, "bad-filter", str(error)) from error
