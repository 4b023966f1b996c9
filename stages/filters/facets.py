"""Facets: for a column how many pictures have each of its values, or lie in each of its ranges. Knows no syntax.

A picture counts for a value if one of the files that a filter found has it, so a facet tells what a filter by its value
as well would find.
"""

from collections.abc import Iterable
from dataclasses import dataclass
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
    ("id", "path", "name", "sha256", "encoder", "pixels", "coding", "bytes", "height", "latitude", "longitude")
)
"""Columns without a facet unless it is asked for."""


@dataclass(frozen=True)
class FacetBar:
    """A range of numbers, or of whole days, with both ends. The last number of a range is the first of the next, unless
    they are whole."""

    begin: Any
    end: Any
    pictures: int


@dataclass(frozen=True)
class Facet:
    """values: of a text, or of true and false, by their number of pictures. more: further values. cut: there are more
    than MOST_DISTINCT, and the rest is not counted. bars: of numbers and dates, without gaps. missing: pictures with a
    file without a value."""

    attribute: Attribute
    missing: int
    values: tuple[tuple[str | bool, int], ...] = ()
    more: int = 0
    cut: bool = False
    bars: tuple[FacetBar, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """The facet in JSON's types."""
        told = {"name": self.attribute.name, "type": self.attribute.kind, "missing": self.missing}
        if self.attribute.kind in ("text", "boolean"):
            values = [{"value": value, "pictures": pictures} for value, pictures in self.values]
            return told | {"values": values, "more": self.more, "cut": self.cut}
        bars = [{"from": each.begin, "to": each.end, "pictures": each.pictures} for each in self.bars]
        return told | {"from": bars[0]["from"] if bars else None, "to": bars[-1]["to"] if bars else None, "bars": bars}


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
    if not len(values):
        return Facet(attribute, missing)
    if attribute.kind in ("text", "boolean"):
        return _of_values(attribute, missing, values, rows)
    if attribute.kind == "date":
        return Facet(attribute, missing, bars=_of_dates(np.asarray(values), rows))
    return Facet(attribute, missing, bars=_of_numbers(np.asarray(values), rows))


def _of_values(attribute: Attribute, missing: int, values: Any, rows: Rows) -> Facet:
    encoded = values if isinstance(values, pa.DictionaryArray) else values.dictionary_encode().combine_chunks()
    counts = _counted(encoded.indices.to_numpy(), rows, len(encoded.dictionary))[:MOST_DISTINCT]
    found = pa.table({"value": encoded.dictionary[:MOST_DISTINCT].cast(pa.string()), "count": counts})
    found = found.filter(pc.greater(found["count"], 0)).sort_by([("count", "descending"), ("value", "ascending")])
    first = zip(*(column.to_pylist() for column in found[:MOST_VALUES].columns), strict=True)
    said = [(value == "true" if attribute.kind == "boolean" else true_text(value), count) for value, count in first]
    more, cut = max(0, len(found) - MOST_VALUES), len(encoded.dictionary) > MOST_DISTINCT
    return Facet(attribute, missing, tuple(said), more, cut)


def _of_numbers(values: Any, rows: Rows) -> tuple[FacetBar, ...]:
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
    counts = _counted(places, rows, len(edges)).tolist()
    return tuple(FacetBar(*edge, count) for edge, count in zip(edges, counts, strict=True))


def _of_dates(moments: Any, rows: Rows) -> tuple[FacetBar, ...]:
    """By days, months or years, or by several years."""
    for unit in ("D", "M", "Y"):
        numbers = moments.astype(f"datetime64[{unit}]").astype(np.int64)
        low, span = int(numbers.min()), int(numbers.max() - numbers.min()) + 1
        if span <= _MOST_DATES:
            break
    width = -(-span // _MOST_DATES)
    counts = _counted((numbers - low) // width, rows, -(-span // width)).tolist()
    firsts = (np.arange(len(counts) + 1) * width + low).astype(f"datetime64[{unit}]").astype("datetime64[D]")
    return tuple(
        FacetBar(str(first), str(following - 1), count)
        for first, following, count in zip(firsts, firsts[1:], counts, strict=False)
    )


def _counted(places: Any, rows: Rows, count: int) -> Any:
    """How many distinct rows each place has, int64 (count,). rows: ascending."""
    if len(rows) < 2 or (np.diff(rows) > 0).all():
        return np.bincount(places, minlength=count)
    pairs = np.unique(rows * np.int64(count) + places)  # below 2**63 for every library that memory holds
    return np.bincount(pairs % count, minlength=count)
