"""The routes of the map: its clusters, its tiles, and the pictures in a part of it, shown or saved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, FastAPI, Path, Query, Response
from numpy.typing import NDArray

from stages.files.layout_files import LEAST, TOO_FEW
from stages.knn.backend import Rows
from stages.report import answer_table
from stages.report.answer_table import CSV
from stages.serving.answer import map_answer
from stages.serving.follow.map_listings import NO_MAP, LibraryMap
from stages.serving.follow.pachyderm_client import Absent
from stages.serving.follow.refusals import Refusal, bad_request
from stages.serving.follow.snapshots import Snapshot
from stages.serving.http.filter_routes import FilterParameter, WhereParameter
from stages.serving.http.json_responses import AsciiJSONResponse
from stages.serving.search.map_points import DEEPEST

_MAPPING = 2
"""Threads."""

_MOST_CORNERS = 300
_LONGEST = 8192

MapParameter = Annotated[str, Query(max_length=64, description="The commit of the map, as `/map` names it.")]


async def _part(
    outline: Annotated[str, Query(max_length=_LONGEST, description="Corners of a polygon: x,y,x,y,…")] = "",
    cluster: Annotated[int | None, Query(description="The number of a cluster.")] = None,
    where: WhereParameter = "",
    filter: FilterParameter = "",
) -> Callable[[LibraryMap, Snapshot], Rows]:
    """Gives the points that a request is about."""
    return lambda found, snapshot: map_answer.chosen(
        found, snapshot.library.attributes.admitted(where, filter), _corners(outline), cluster
    )


PartParameter = Annotated[Callable[[LibraryMap, Snapshot], Rows], Depends(_part)]


class MapRoutes:
    """Answers from the newest map. snapshot: gives that of the moment, or raises Refusal."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot
        self._mapping = ThreadPoolExecutor(_MAPPING, "map")

    def close(self) -> None:
        """Ends the threads."""
        self._mapping.shutdown(wait=False, cancel_futures=True)

    def add_to(self, app: FastAPI) -> None:
        app.get("/map", tags=["map"])(self.map)
        app.get("/map/tiles/{z}/{x}/{y}", tags=["map"])(self.tile)
        app.get("/map/pictures", tags=["map"])(self.pictures)
        app.get("/map/table", tags=["map"], response_class=Response)(self.table)

    async def map(self) -> Response:
        """The clusters of the map, with the values of attributes that mark them: share in the cluster, and lift, how
        many times the share in the library that is."""
        return AsciiJSONResponse(await self._run(map_answer.overview))

    async def tile(
        self,
        z: Annotated[int, Path(ge=0, le=DEEPEST)],
        x: Annotated[int, Path(ge=0)],
        y: Annotated[int, Path(ge=0)],
        commit: MapParameter = "",
        where: WhereParameter = "",
        filter: FilterParameter = "",
    ) -> Response:
        """A tile of the map, the square from -1 to 1: of level z in column x and row y, with points [x, y, cluster, id]
        or, where there are many, [cell, pictures, cluster] of cells in a grid of 128 × 128."""
        if max(x, y) >= 1 << z:
            raise bad_request(f"level {z} has the tiles 0 to {(1 << z) - 1} each way")

        def made(found: LibraryMap, snapshot: Snapshot) -> dict[str, Any]:
            return map_answer.tile(found, snapshot.library.attributes.admitted(where, filter), z, x, y)

        return AsciiJSONResponse(await self._run(made, commit))

    async def pictures(self, part: PartParameter) -> Response:
        """The pictures in an outline or a cluster: their number, the ids of the first 10,000, and the first 200."""
        return AsciiJSONResponse(
            await self._run(lambda found, snapshot: map_answer.pictures(found, snapshot, part(found, snapshot)))
        )

    async def table(self, part: PartParameter) -> Response:
        """The same pictures with their places as a table in CSV: id, path, x, y, cluster."""

        def made(found: LibraryMap, snapshot: Snapshot) -> bytes:
            return answer_table.encoded(map_answer.table(found, snapshot, part(found, snapshot)), CSV)

        headers = {"Content-Disposition": 'attachment; filename="map.csv"', "Cache-Control": "private, no-cache"}
        return Response(await self._run(made), headers=headers, media_type=CSV)

    async def _run(self, made: Callable[[LibraryMap, Snapshot], Any], commit: str = "") -> Any:
        loop, snapshot = asyncio.get_running_loop(), self._snapshot()
        return await loop.run_in_executor(self._mapping, _answered, snapshot, made, commit)


def _answered(snapshot: Snapshot, made: Callable[[LibraryMap, Snapshot], Any], commit: str) -> Any:
    if snapshot.maps is None:
        raise Refusal(409, "no-map", "this service is of an earlier library, and the map is of the newest one")
    try:
        found = snapshot.maps.of(snapshot.library, commit)
    except Absent as error:
        count = len(snapshot.library)
        raise Refusal(409, "no-map", TOO_FEW.format(count) if count < LEAST else NO_MAP) from error
    if commit not in ("", found.commit):
        raise Refusal(409, "map-moved", "there is a newer map than that of this commit: ask for /map again")
    return made(found, snapshot)


def _corners(outline: str) -> NDArray[np.float64] | None:
    if not outline:
        return None
    try:
        numbers = np.array([float(each) for each in outline.split(",")])
    except ValueError as error:
        raise bad_request("an outline is numbers: x,y,x,y,…") from error
    if len(numbers) % 2 or not 6 <= len(numbers) <= 2 * _MOST_CORNERS or not np.isfinite(numbers).all():
        raise bad_request(f"an outline has 3 to {_MOST_CORNERS} corners, x,y of each")
    return numbers.reshape(-1, 2)
