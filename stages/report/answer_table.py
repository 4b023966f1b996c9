"""Answers as a table with a row for each file, in CSV and in Parquet: the same for the command, Python and the page.

A row has the rank, the distance and the likeness of the file's picture, its path, and all that is known of the file and
of the picture. A picture with several files has as many rows. Knows neither how an answer comes about nor who wants it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stages.files.tables.parquet import true_text
from stages.record.sources import Source

CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
"""Media types."""

_FIRST = ("query", "rank", "distance", "likeness", "similarity", "group", "path")
_LAST = ("coding", "encoder", "pixels", "sha256", "id")
_TYPES = {"query": pa.string(), "rank": pa.int64(), "distance": pa.float64(), "likeness": pa.string()} | {
    "similarity": pa.float64(),
    "group": pa.int64(),
    "taken": pa.timestamp("s"),
}
_ODD = re.compile("[\ud800-\udfff]")
_FORMULA = re.compile(r"[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")
"""What spreadsheets take for the beginning of a formula."""

_PATHS = ("query", "path")

_AT_ONCE = 4096
"""Rows that are written to CSV at once."""

Row = Mapping[str, Any]


def rows(answer: Mapping[str, Any], query: str = "") -> list[Row]:
    """The rows of an answer to a search, in its order. query: its name, if not the names of the pictures in it."""
    asked = query or ", ".join(each["name"] for each in answer.get("pictures", ()))
    found: list[Row] = []
    for picture in answer["neighbors"]:
        own = {name: picture[name] for name in (*_FIRST, "id") if name in picture}
        for source in picture["sources"]:
            facts = {name: value for name, value in source.items() if name not in ("number", "attributes")}
            found.append({"query": asked, **own, **facts, **source.get("attributes", {})})
    return found


def ordered(names: Iterable[str]) -> list[str]:
    """The names of columns: the answer's, then what is known of the files in the order of the first one, then
    hashes."""
    known = dict.fromkeys(names)
    between = [each for each in known if each not in {*_FIRST, *_LAST}]
    return [*(each for each in _FIRST if each in known), *between, *(each for each in _LAST if each in known)]


def to_arrow(found: Sequence[Row]) -> pa.Table:
    """The rows as a table of Arrow. What is not known is null; dates are timestamps without a time zone. A byte of a
    name that is not UTF-8 is \\xff. Without rows there are the columns that every answer has."""
    names = ordered(name for each in found for name in each) or ordered((*_FIRST, *Source._fields, "id"))
    table = {}
    for name in names:
        values = [_known(name, each.get(name)) for each in found]
        kind = _TYPES.get(name) or (pa.string() if all(each is None for each in values) else None)
        table[name] = pa.array(values, kind)
    return pa.table(table)


def plain(found: Row) -> dict[str, Any]:
    """What is known of a row in JSON's types: as `to_arrow` has it, without what is not known."""
    known = ((name, _known(name, value)) for name, value in found.items())
    return {
        name: value.isoformat() if isinstance(value, datetime) else value for name, value in known if value is not None
    }


def shown(stored: pa.Table) -> pa.Table:
    """Columns of stored texts as `to_arrow` has them."""
    columns = {}
    for name, column in zip(stored.column_names, stored.columns, strict=True):
        plain = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        if pa.types.is_string(plain.type) and pc.any(pc.match_substring(plain, "\0")).as_py():
            plain = pa.array([each and _ODD.sub(_coded, true_text(each)) for each in plain.to_pylist()])
        columns[name] = plain
    return pa.table(columns)


def csv_pieces(table: pa.Table) -> Iterator[bytes]:
    """A table in CSV (RFC 4180, UTF-8), some lines at a time, with the names of the columns first. What is not known is
    empty. A text that a spreadsheet would run as a formula begins with ' instead, and a path with ./, which leads to
    the same file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches(_AT_ONCE):
        columns = [
            [_cell(name, value) for value in column.to_pylist()]
            for name, column in zip(table.column_names, batch.columns, strict=True)
        ]
        writer.writerows(zip(*columns, strict=True))
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode()


def encoded(table: pa.Table, media_type: str) -> bytes:
    """A table in CSV or Parquet."""
    if media_type == CSV:
        return b"".join(csv_pieces(table))
    to = io.BytesIO()
    pq.write_table(table, to)
    return to.getvalue()


def _known(name: str, value: Any) -> Any:
    if isinstance(value, str):
        plain = _ODD.sub(_coded, value)
        return datetime.fromisoformat(plain) if plain and name == "taken" else plain or None
    return None if value == 0 and name in ("width", "height", "bytes") else value


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value if not _FORMULA.match(value) else f"./{value}" if name in _PATHS else f"'{value}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat()
    return "" if value is None else repr(value)


def _coded(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"
