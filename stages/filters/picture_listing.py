"""Pictures without a query: in the order of a column, page by page, and on a grid of places. Knows no syntax."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.files.path_globs import FilterError
from stages.files.tables.parquet import stored_text, true_text
from stages.filters.attribute_table import AttributeTable, decoded
from stages.knn.backend import Mask, Rows

SORTS = ("name", "-name", "taken", "-taken")
"""The orders: by a column, or backwards by it. What is not known comes last, equal values by their path."""

MOST_PLACES = 2000

_GRIDS = (45.0, 10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)
"""The sides of cells, in degrees."""


@dataclass(frozen=True)
class ListedPicture:
    """A picture, by its row, and the true path of the file by which it is listed: in a folder, or the first one in an
    order."""

    row: int
    path: str


def sorted_files(table: AttributeTable, sort: str) -> Rows:
    """The files in one of SORTS, int64 (m,)."""
    keys = decoded(table.column(sort.removeprefix("-")))
    paths = table.column("path")
    sorted_by = pa.table({"key": keys, "path": paths})
    way = "descending" if sort.startswith("-") else "ascending"
    order = [("key", way, "at_end"), ("path", "ascending", "at_end")]
    found: Rows = pc.sort_indices(sorted_by, sort_keys=order).to_numpy().astype(np.int64)
    return found


def listed_files(table: AttributeTable, ordered: Rows) -> Rows:
    """Of files in an order each picture's first alone. ordered: int64."""
    _, firsts = np.unique(table.rows[ordered], return_index=True)
    found: Rows = ordered[np.sort(firsts)]
    return found


def listing_page(
    table: AttributeTable, listed: Rows, after: str | None, limit: int
) -> tuple[list[ListedPicture], str | None]:
    """A page of at most `limit` pictures, and the cursor of the next one. listed: the files of all pages. after: the
    cursor in the page before. Raises FilterError for a cursor that no page of these had."""
    first = 0 if after is None else _following(table, listed, after)
    some = listed[first : first + limit]
    paths = [true_text(each) for each in table.column("path").take(pa.array(some)).to_pylist()]
    page = [ListedPicture(int(table.rows[file]), path) for file, path in zip(some, paths, strict=True)]
    last = first + len(page)
    return page, f"{last}:{paths[-1]}" if last < len(listed) else None


def _following(table: AttributeTable, listed: Rows, after: str) -> int:
    """The place behind the picture of a cursor, which may have moved since."""
    number, colon, path = after.partition(":")
    column, place = table.column("path"), int(number) if number.isdecimal() and len(number) < 12 else 0
    if 0 < place <= len(listed) and true_text(column[int(listed[place - 1])].as_py()) == path:
        return place
    at = pc.index(column.take(pa.array(listed)), stored_text(path)).as_py()
    if not colon or at < 0:
        raise FilterError("after is not a cursor of this listing, or its picture is gone: leave it out to start again")
    return int(at) + 1


def place_clusters(table: AttributeTable, files: Mask) -> list[dict[str, Any]]:
    """The places of these files in at most MOST_PLACES clusters of pictures near each other, the largest first, in
    JSON's types: the mean of their places in degrees, how many pictures they are, the row of one, and the box that
    holds them all. files: bool (m,)."""
    places = [_floats(table.column(name)) for name in ("latitude", "longitude")]
    known = np.flatnonzero(files & (np.abs(places[0]) <= 90) & (np.abs(places[1]) <= 180))
    if not len(known):
        return []
    latitudes, longitudes = (each[known] for each in places)

    def cells(side: float) -> Any:
        return np.floor(latitudes / side) * (1 << 21) + np.floor(longitudes / side)

    grids: Sequence[float] = _GRIDS
    finest = max(1, bisect_left(grids, True, key=lambda side: len(np.unique(cells(side))) > MOST_PLACES))
    found, cell = np.unique(cells(grids[finest - 1]), return_inverse=True)
    rows = table.rows[known]
    pairs = np.unique(rows * np.int64(max(1, len(found))) + cell)
    pictures = np.bincount(pairs % max(1, len(found)), minlength=len(found))
    counts = np.bincount(cell, minlength=len(found))
    means = [np.bincount(cell, each, len(found)) / counts for each in (latitudes, longitudes)]
    example = np.zeros(len(found), np.int64)
    example[cell[::-1]] = rows[::-1]  # the first of each cell
    grouped = np.argsort(cell, kind="stable")
    starts = np.flatnonzero(np.diff(cell[grouped], prepend=-1))
    box = [end.reduceat(each[grouped], starts) for each in (latitudes, longitudes) for end in (np.minimum, np.maximum)]
    order = np.lexsort((example, -pictures))
    names = ("latitude", "longitude", "pictures", "row", "south", "north", "west", "east")
    columns = (each[order].tolist() for each in (*means, pictures, example, *box))
    return [dict(zip(names, each, strict=True)) for each in zip(*columns, strict=True)]


def _floats(column: Any) -> Any:
    """With NaN for null."""
    return np.asarray(pc.fill_null(column, float("nan")))
