"""The routes that save what is shown: original files as one zip archive, and listings as tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from stages.datum.text_format import size
from stages.record.sources import Source
from stages.report import answer_table
from stages.report.answer_table import CSV, PARQUET
from stages.serving.answer import attribute_answer
from stages.serving.follow.original_files import OriginalFiles, SourceGoneError
from stages.serving.follow.pachyderm_client import PachydermError
from stages.serving.follow.refusals import Refusal, bad_request
from stages.serving.follow.snapshots import Snapshot
from stages.serving.http import stored_zip
from stages.serving.http.attribute_routes import FilterParameter, WhereParameter, filtered
from stages.serving.http.library_routes import source_of
from stages.serving.http.stored_zip import MOST_BYTES, MOST_MEMBERS, ZipMember

_AT_ONCE = 4
"""Downloads that are made at a time; the others wait."""

_FIELDS = ("id", "where", "filter", "sort")
_TEXT = {"type": "string"}
_FORM = {"id": {"type": "array", "items": _TEXT, "maxItems": MOST_MEMBERS}, **dict.fromkeys(_FIELDS[1:], _TEXT)}


class DownloadRoutes:
    """Answers from the snapshot of the moment, which `snapshot` gives, or raises Refusal."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot
        self._making = ThreadPoolExecutor(_AT_ONCE, "downloads")

    def close(self) -> None:
        """Ends the threads."""
        self._making.shutdown(wait=False, cancel_futures=True)

    def add_to(self, app: FastAPI) -> None:
        parameters = [{"name": name, "in": "query", "schema": each} for name, each in _FORM.items()]
        form = {"application/x-www-form-urlencoded": {"schema": {"type": "object", "properties": _FORM}}}
        for add, extra in ((app.get, {"parameters": parameters}), (app.post, {"requestBody": {"content": form}})):
            add("/zip", tags=["library"], response_class=Response, openapi_extra=extra)(self.zip)
        app.get("/table", tags=["library"], response_class=Response)(self.table)

    async def zip(self, request: Request) -> Response:
        """Original files as one zip archive: of each `id` in turn (`id=9f3c…`, or `id=9f3c…:1` for another of its
        sources), or of the pictures that `where` and `filter` admit, one file of each, as `/pictures` lists them. At
        most 2,000 files and 4 GB. What cannot be had any more is listed in its MISSING.txt."""
        snapshot, asked = self._snapshot(), await _asked(request)
        found = await filtered(self._making, lambda: _files(snapshot, asked))
        return self._sent(stored_zip.archive(_members(snapshot.originals, found)), "pictures.zip", "application/zip")

    async def table(
        self,
        where: WhereParameter = "",
        filter: FilterParameter = "",
        sort: str = "name",
        format: Literal["csv", "parquet"] = "csv",
    ) -> Response:
        """The pictures that the filters admit as one table, in the order of `/pictures`, with all that is known of the
        file and the picture: CSV, or Parquet with format=parquet."""
        snapshot = self._snapshot()
        found = await filtered(self._making, lambda: attribute_answer.table(snapshot, where, filter, sort))
        if format == "csv":
            return self._sent(answer_table.csv_pieces(found), "pictures.csv", CSV)
        content = await filtered(self._making, lambda: answer_table.encoded(found, PARQUET))
        return self._sent(iter([content]), "pictures.parquet", PARQUET)

    def _sent(self, pieces: Iterator[bytes], name: str, media_type: str) -> Response:
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-cache"}

        async def sent() -> AsyncIterator[bytes]:
            while piece := await filtered(self._making, lambda: next(pieces, b"")):
                yield piece

        return StreamingResponse(sent(), headers=headers, media_type=media_type)


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
