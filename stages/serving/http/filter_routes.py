"""The routes of what filters find: facets, listings without a query and places, shown or saved as tables and zips."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from stages.datum.text_format import size
from stages.files import path_globs
from stages.files.question import LONGEST_WHERE, describe
from stages.record.sources import Source
from stages.report import answer_table
from stages.report.answer_table import CSV, PARQUET
from stages.serving.answer import attribute_answer
from stages.serving.follow.original_files import OriginalFiles, SourceGoneError
from stages.serving.follow.pachyderm_client import PachydermError
from stages.serving.follow.refusals import Refusal, bad_request
from stages.serving.follow.snapshots import Snapshot
from stages.serving.http import stored_zip
from stages.serving.http.json_responses import AsciiJSONResponse
from stages.serving.http.library_routes import PageLimit, source_of
from stages.serving.http.response_models import FacetsBody, PicturesBody, PlacesBody
from stages.serving.http.stored_zip import MOST_BYTES, MOST_MEMBERS, ZipMember

_COUNTING, _SAVING = 2, 4
"""Threads that count, since each filter takes memory, and that make downloads; what is more waits."""

WhereParameter = Annotated[str, Query(max_length=LONGEST_WHERE, description=describe("where"))]
FilterParameter = Annotated[str, Query(max_length=path_globs.LONGEST, description=describe("filter"))]

_FIELDS = ("id", "where", "filter", "sort")
_TEXT = {"type": "string"}
_FORM = {"id": {"type": "array", "items": _TEXT, "maxItems": MOST_MEMBERS}, **dict.fromkeys(_FIELDS[1:], _TEXT)}


class FilterRoutes:
    """Answers from the snapshot of the moment. snapshot: gives it, or raises Refusal."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot
        self._counting = ThreadPoolExecutor(_COUNTING, "attributes")
        self._saving = ThreadPoolExecutor(_SAVING, "downloads")

    def close(self) -> None:
        """Ends the threads."""
        for threads in (self._counting, self._saving):
            threads.shutdown(wait=False, cancel_futures=True)

    def add_to(self, app: FastAPI) -> None:
        app.get("/facets", tags=["library"], response_model=FacetsBody)(self.facets)
        app.get("/pictures", tags=["library"], response_model=PicturesBody)(self.pictures)
        app.get("/places", tags=["library"], response_model=PlacesBody)(self.places)
        app.get("/table", tags=["library"], response_class=Response)(self.table)
        parameters = [{"name": name, "in": "query", "schema": each} for name, each in _FORM.items()]
        form = {"application/x-www-form-urlencoded": {"schema": {"type": "object", "properties": _FORM}}}
        for add, extra in ((app.get, {"parameters": parameters}), (app.post, {"requestBody": {"content": form}})):
            add("/zip", tags=["library"], response_class=Response, openapi_extra=extra)(self.zip)

    async def facets(self, where: WhereParameter = "", filter: FilterParameter = "", columns: str = "") -> Response:
        """How many pictures have each value of a column, for columns separated by commas, by default those that people
        want to see. Counts what each value would leave of the pictures that the filters admit."""
        names = [each.strip().lower() for each in columns.split(",") if each.strip()]
        return await self._counted(attribute_answer.facets, where, filter, names)

    async def pictures(
        self,
        where: WhereParameter = "",
        filter: FilterParameter = "",
        sort: str = "name",
        after: str | None = None,
        limit: PageLimit = 100,
    ) -> Response:
        """A page of the pictures that the filters admit, by name or date taken (sort=taken), or backwards (-taken)."""
        return await self._counted(attribute_answer.pictures, where, filter, sort, after, limit)

    async def places(self, where: WhereParameter = "", filter: FilterParameter = "") -> Response:
        """Where the pictures that the filters admit were taken: clusters, each with the id of one of its pictures."""
        return await self._counted(attribute_answer.places, where, filter)

    async def table(
        self,
        where: WhereParameter = "",
        filter: FilterParameter = "",
        sort: str = "name",
        format: Literal["csv", "parquet"] = "csv",
    ) -> Response:
        """The pictures that the filters admit as one table, in the order of `/pictures`, with all that is known of the
        file and the picture: CSV, or Parquet with format=parquet."""
        found = await _run(self._saving, attribute_answer.table, self._snapshot(), where, filter, sort)
        if format == "csv":
            return self._saved(answer_table.csv_pieces(found), "pictures.csv", CSV)
        content = await _run(self._saving, answer_table.encoded, found, PARQUET)
        return self._saved(iter([content]), "pictures.parquet", PARQUET)

    async def zip(self, request: Request) -> Response:
        """Original files as one zip archive: of each `id` in turn (`id=9f3c…`, or `id=9f3c…:1` for another of its
        sources), or of the pictures that `where` and `filter` admit, one file of each, as `/pictures` lists them. At
        most 2,000 files and 4 GB. What cannot be had any more is listed in its MISSING.txt."""
        snapshot, asked = self._snapshot(), await _asked(request)
        found = await _run(self._saving, _files, snapshot, asked)
        return self._saved(stored_zip.archive(_members(snapshot.originals, found)), "pictures.zip", "application/zip")

    async def _counted(self, answer: Callable[..., dict[str, Any]], *asked: Any) -> Response:
        return AsciiJSONResponse(await _run(self._counting, answer, self._snapshot(), *asked))

    def _saved(self, pieces: Iterator[bytes], name: str, media_type: str) -> Response:
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-cache"}

        async def sent() -> AsyncIterator[bytes]:
            while piece := await _run(self._saving, next, pieces, b""):
                yield piece

        return StreamingResponse(sent(), headers=headers, media_type=media_type)


async def _run(threads: ThreadPoolExecutor, work: Callable[..., Any], *given: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(threads, work, *given)


async def _asked(request: Request) -> Sequence[tuple[str, str]]:
    """The fields of a request, in its address or its form."""
    if request.method == "GET":
        return request.query_params.multi_items()
    try:
        form = await request.form(max_files=0, max_fields=MOST_MEMBERS + len(_FIELDS))
    except HTTPException as error:
        raise bad_request(f"the form is not valid: {error.detail}") from error
    return [(name, value) for name, value in form.multi_items() if isinstance(value, str)]


def _files(snapshot: Snapshot, asked: Sequence[tuple[str, str]]) -> Sequence[Source]:
    """The files that are asked for. Raises Refusal and FilterError."""
    texts: Mapping[str, str] = dict(asked)
    if unknown := texts.keys() - _FIELDS:
        raise bad_request(f"{min(unknown)[:80]} is not a field of a download: they are {', '.join(_FIELDS)}")
    named = [value for name, value in asked if name == "id"]
    if bool(named) == bool(texts.keys() - {"id"}):
        raise bad_request("name each picture by id, or all that a filter admits (filter= for the whole library)")
    if not named:
        where, filter, sort = texts.get("where", ""), texts.get("filter", ""), texts.get("sort", "name")
        found = attribute_answer.files(snapshot, where, filter, sort, MOST_MEMBERS + 1)
    else:
        found = [_named(snapshot, each) for each in named]
    whole = sum(each.bytes for each in found)
    if len(found) > MOST_MEMBERS or whole > MOST_BYTES:
        what = (
            f"these are more than {MOST_MEMBERS:,} files" if whole <= MOST_BYTES else f"these files have {size(whole)}"
        )
        most = f"one archive holds at most {MOST_MEMBERS:,} files with {size(MOST_BYTES)}"
        raise Refusal(413, "too-large", f"{what}: {most}")
    return found


def _named(snapshot: Snapshot, name: str) -> Source:
    id, _, number = name.partition(":")
    if number and not (number.isascii() and number.isdigit() and len(number) < 9):
        raise bad_request(f"the number of a source is a whole number, not {number[:20]}")
    return source_of(snapshot, id, int(number or 0))


def _members(originals: OriginalFiles, sources: Sequence[Source]) -> Iterator[ZipMember | str]:
    for source in sources:
        try:
            file = originals.open(source)
        except (SourceGoneError, PachydermError) as error:
            yield f"{source.path}: {error}"
            continue
        name = f"{source.path.rpartition('/')[0]}/{file.name}"
        yield ZipMember(name, source.taken, file.size, file.crc, file.chunks)
