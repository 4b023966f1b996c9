"""What the library holds by attributes, as answers: facets, listings without a query, and places.

A function of a snapshot and the filters. Knows no HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from stages.files.path_globs import FilterError
from stages.filters.attribute_table import unknown_column
from stages.filters.picture_listing import listing_page
from stages.record.attribute_schema import DERIVED
from stages.record.sources import Source
from stages.report import answer_table
from stages.serving.answer import search_answer
from stages.serving.follow.snapshots import Snapshot


def facets(snapshot: Snapshot, where: str, filter: str, columns: Sequence[str]) -> dict[str, Any]:
    """The facets of some columns, by default of those that people want to see. Raises FilterError."""
    attributes = snapshot.library.attributes
    known = attributes.table.columns
    for name in columns:
        if name not in known:
            raise FilterError(unknown_column(name, known))
    return {
        "pictures": len(snapshot.library),
        "matching": _matching(snapshot, where, filter),
        "columns": [{"name": each.name, "type": each.kind, "of": each.of} for each in known.values()],
        "facets": attributes.facets(where, filter, tuple(columns)),
        "commits": snapshot.commits.as_data(),
    }


def pictures(snapshot: Snapshot, where: str, filter: str, sort: str, after: str | None, limit: int) -> dict[str, Any]:
    """A page of the pictures in an order. Raises FilterError."""
    listed = snapshot.library.attributes.listed(where, filter, sort)
    page, following = listing_page(snapshot.library.attributes.table, listed, after, limit)
    return {
        "pictures": [search_answer.listed_picture(snapshot, each.row, each.path) for each in page],
        "after": following,
        "total": len(listed),
        "commits": snapshot.commits.as_data(),
    }


def places(snapshot: Snapshot, where: str, filter: str) -> dict[str, Any]:
    """The places of the pictures, in clusters. Raises FilterError."""
    library = snapshot.library
    found = [dict(each) for each in library.attributes.places(where, filter)]
    return {
        "places": [{"id": library.id(each.pop("row")), **each} for each in found],
        "matching": _matching(snapshot, where, filter),
        "commits": snapshot.commits.as_data(),
    }


def files(snapshot: Snapshot, where: str, filter: str, sort: str, most: int) -> list[Source]:
    """The files by which the first pictures are listed, so many at most. Raises FilterError."""
    table = snapshot.library.attributes.table
    found, _ = listing_page(table, snapshot.library.attributes.listed(where, filter, sort), None, most)
    sources = ((each.path, snapshot.library.sources(each.row)) for each in found)
    return [next(each for each in some if each.path == path) for path, some in sources]


def table(snapshot: Snapshot, where: str, filter: str, sort: str) -> pa.Table:
    """All that is known of the files that both filters admit and their pictures, a row for each file, in an order, with
    the columns of an answer to a search (see stages.report.answer_table). Raises FilterError."""
    known = snapshot.library.attributes.table
    some = pa.array(snapshot.library.attributes.ordered(where, filter, sort))
    names = answer_table.ordered([*Source._fields, *(name for name in known.columns if name not in DERIVED)])
    return answer_table.shown(pa.table({name: known.column(name).take(some) for name in names}))


def _matching(snapshot: Snapshot, where: str, filter: str) -> int:
    admitted = snapshot.library.attributes.admitted(where, filter)
    return len(snapshot.library) if admitted is None else int(admitted.sum())
