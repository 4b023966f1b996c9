"""Facets: for a column how many pictures have each of its values, or lie in each of its ranges. Knows no syntax.

A picture counts for a value if one of the files that a filter found has it, so a facet tells what a filter by its value
as well would find.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.files.tables.parquet import true_text
from stages.filters.attribute_table import Attribute, AttributeTable
from stages.knn.backend import Mask, Rows

MOST_VALUES = 50
"""Values of a facet, the most frequent ones."""

MOST_DISTINCT = 1_000_000
"""Values of a column that are counted at all."""

_BARS = 24
_MOST_DATES = 62
"""Bars of numbers, and at most of dates: days, months or years."""

_UNSHOWN = frozenset(
    (
        "id",
        "path",
        "name",
        "anywhere",
        "sha256",
        "encoder",
        "pixels",
        "coding",
        "bytes",
        "height",
        "latitude",
        "longitude",
    )
)
"""Columns without a facet unless it is asked for."""


Facet = dict[str, Any]
"""A facet in JSON's types: the column's name and type; missing: pictures with a file without a value.

Of texts, and of true and false: values, each with its number of pictures, by which they are sorted; more: further
values; cut: there are more than MOST_DISTINCT, and the rest is not counted. Of numbers and dates: bars without gaps,
each a range of numbers or of whole days with its number of pictures, and the range of all. Ranges have both ends (from
and to); the last number of one is the first of the next, unless they are whole.
"""


def shown_columns(table: AttributeTable) -> list[str]:
    """The columns whose facets people want to see."""
    return [name for name in table.columns if name not in _UNSHOWN]


def count_facets(table: AttributeTable, files: Mask, columns: Iterable[str]) -> list[Facet]:
    """The facets of the pictures with these files. files: bool (m,). Raises KeyError for a column that is not there."""
    return [_facet(table, table.columns[name], files) for name in columns]


def _facet(table: AttributeTable, attribute: Attribute, files: Mask) -> Facet:
    values = table.column(attribute.name).filter(pa.array(files))
    rows = table.rows[files]
    unknown = np.asarray(pc.is_null(values))
    missing = len(np.unique(rows[unknown]))
    values, rows = values.drop_null(), rows[~unknown]
    told = {"name": attribute.name, "type": attribute.kind, "missing": missing}
    if attribute.kind in ("text", "boolean"):
        return told | _of_values(values, rows)
    bars = [] if not len(rows) else (_of_dates if attribute.kind == "date" else _of_numbers)(np.asarray(values), rows)
    ends = {"from": bars[0]["from"], "to": bars[-1]["to"]} if bars else {"from": None, "to": None}
    return {**told, **ends, "bars": bars}


def _of_values(values: Any, rows: Rows) -> dict[str, Any]:
    encoded = values if isinstance(values, pa.DictionaryArray) else values.dictionary_encode().combine_chunks()
    counts = _counted(encoded.indices.to_numpy(), rows, len(encoded.dictionary))[:MOST_DISTINCT]
    found = pa.table({"value": encoded.dictionary[:MOST_DISTINCT], "pictures": counts})
    found = found.filter(pc.greater(found["pictures"], 0))
    found = found.sort_by([("pictures", "descending"), ("value", "ascending")])
    first = found[:MOST_VALUES].to_pylist()
    said = [each | {"value": true_text(each["value"])} if isinstance(each["value"], str) else each for each in first]
    more, cut = max(0, len(found) - MOST_VALUES), len(encoded.dictionary) > MOST_DISTINCT
    return {"values": said, "more": more, "cut": cut}


def _of_numbers(values: Any, rows: Rows) -> list[dict[str, Any]]:
    low, high = values.min().item(), values.max().item()
    if isinstance(low, int) and high - low < 1 << 53:
        width: float = -(-(high - low + 1) // _BARS)
        places = (values - low) // width
        edges = [(low + at * width, min(low + (at + 1) * width - 1, high)) for at in range(int(places.max()) + 1)]
    else:
        numbers = values.astype(np.float64)
        low, high = float(low), float(high)
        width = high / _BARS - low / _BARS  # their difference may be too large
        places = np.clip((numbers / width - low / width).astype(np.int64), 0, _BARS - 1) if width else 0 * rows
        edges = [(low + at * width, low + (at + 1) * width) for at in range(_BARS - 1)] if width else []
        edges.append((low + (_BARS - 1) * width, high))
    return _bars(edges, _counted(places, rows, len(edges)))


def _of_dates(moments: Any, rows: Rows) -> list[dict[str, Any]]:
    """By days, months or years, or by several years."""
    for unit in ("D", "M", "Y"):
        numbers = moments.astype(f"datetime64[{unit}]").astype(np.int64)
        low, span = int(numbers.min()), int(numbers.max() - numbers.min()) + 1
        if span <= _MOST_DATES:
            break
    width = -(-span // _MOST_DATES)
    counts = _counted((numbers - low) // width, rows, -(-span // width))
    firsts = (np.arange(len(counts) + 1) * width + low).astype(f"datetime64[{unit}]").astype("datetime64[D]")
    return _bars(zip(firsts[:-1].astype(str).tolist(), (firsts[1:] - 1).astype(str).tolist(), strict=True), counts)


def _bars(edges: Iterable[tuple[Any, Any]], counts: Any) -> list[dict[str, Any]]:
    return [{"from": a, "to": b, "pictures": n} for (a, b), n in zip(edges, counts.tolist(), strict=True)]


def _counted(places: Any, rows: Rows, count: int) -> Any:
    """How many distinct rows each place has, int64 (count,). rows: ascending."""
    if len(rows) < 2 or (np.diff(rows) > 0).all():
        return np.bincount(places, minlength=count)
    pairs = np.unique(rows * np.int64(count) + places)  # below 2**63 for every library that memory holds
    return np.bincount(pairs % count, minlength=count)
