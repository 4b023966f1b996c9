"""What the library holds by attributes, as answers: facets, listings without a query, and places.

A function of a snapshot and the filters. Knows no HTTP.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from stages.files.path_globs import FilterError
from stages.filters.picture_listing import SORTS, listing_page
from stages.serving.answer import search_answer
from stages.serving.follow.snapshots import Snapshot


def facets(snapshot: Snapshot, where: str, filter: str, columns: Sequence[str]) -> dict[str, Any]:
    """The facets of some columns, by default of those that people want to see. Raises FilterError."""
    attributes = snapshot.library.attributes
    known = attributes.table.columns
    for name in columns:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1) or [", ".join(sorted(known))]
            raise FilterError(f"there is no column {name[:60]}: is it {near[0]}?")
    return {
        "pictures": len(snapshot.library),
        "matching": _matching(snapshot, where, filter),
        "columns": [{"name": each.name, "type": each.kind, "of": each.of} for each in known.values()],
        "facets": [each.as_data() for each in attributes.facets(where, filter, tuple(columns))],
        "commits": snapshot.commits.as_data(),
    }


def pictures(snapshot: Snapshot, where: str, filter: str, sort: str, after: str | None, limit: int) -> dict[str, Any]:
    """A page of the pictures in an order. Raises FilterError."""
    if sort not in SORTS:
        raise FilterError(f"sort is one of {', '.join(SORTS)}")
    attributes = snapshot.library.attributes
    listed = attributes.listed(where, filter, sort)
    page, following = listing_page(attributes.table, listed, after, limit)
    return {
        "pictures": [search_answer.listed_picture(snapshot, each.row, each.path) for each in page],
        "after": following,
        "total": len(listed),
        "commits": snapshot.commits.as_data(),
    }


def places(snapshot: Snapshot, where: str, filter: str) -> dict[str, Any]:
    """The places of the pictures, in clusters. Raises FilterError."""
    library = snapshot.library
    return {
        "places": [
            {
                "latitude": each.latitude,
                "longitude": each.longitude,
                "pictures": each.pictures,
                "id": library.id(each.row),
            }
            for each in library.attributes.places(where, filter)
        ],
        "matching": _matching(snapshot, where, filter),
        "commits": snapshot.commits.as_data(),
    }


def _matching(snapshot: Snapshot, where: str, filter: str) -> int:
    if not where and not filter:
        return len(snapshot.library)
    return int(snapshot.library.attributes.pictures(where, filter).sum())
