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
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from stages.record.sources import Source

CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
"""Media types."""

_FIRST = ("query", "rank", "distance", "likeness", "similarity", "group", "path")
_LAST = ("coding", "encoder", "pixels", "sha256", "id")
_ADDRESSES = ("number", "thumbnail", "original", "sources", "attributes")
_TYPES = {"query": pa.string(), "rank": pa.int64(), "distance": pa.float64(), "likeness": pa.string()} | {
    "similarity": pa.float64(),
    "group": pa.int64(),
    "taken": pa.timestamp("s"),
}
_ODD = re.compile("[\ud800-\udfff]")
_FORMULA = re.compile(r"[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")
"""What spreadsheets take for the beginning of a formula."""

_PATHS = ("query", "path")

Row = Mapping[str, Any]


def rows(answer: Mapping[str, Any], query: str = "") -> list[Row]:
    """The rows of an answer to a search, in its order. query: its name, if not the names of the pictures in it."""
    asked = query or ", ".join(each["name"] for each in answer.get("pictures", ()) if "name" in each)
    found = []
    for picture in answer["neighbours"]:
        own = {name: picture[name] for name in (*_FIRST, "id") if name in picture}
        for source in picture["sources"]:
            facts = {**source, **source.get("attributes", {})}
            found.append({"query": asked, **own, **_without(facts)})
    return found


def listed(pictures: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The rows of listed pictures: of each the file that it is listed for."""
    return [{**_without(each["sources"][0]), "id": each["id"]} for each in pictures]


def _without(facts: Row) -> Row:
    return {name: value for name, value in facts.items() if name not in _ADDRESSES}


def columns(found: Iterable[Row]) -> list[str]:
    """The names of the columns of rows: the answer's, then what is known of the files in the order of the first one,
    then hashes. Without rows those that every answer has."""
    names = list(dict.fromkeys(name for each in found for name in each)) or [*_FIRST, *Source._fields, "id"]
    known = {*_FIRST, *_LAST}
    between = [each for each in names if each not in known]
    return [*(each for each in _FIRST if each in names), *between, *(each for each in _LAST if each in names)]


def csv_pieces(found: Sequence[Row]) -> Iterator[str]:
    """The rows in CSV (RFC 4180), a line at a time, with the names of the columns first.

    A text that a spreadsheet would run as a formula begins with ' instead, and a path with ./, which leads to the same
    file. A byte of a name that is not UTF-8 is \\xff. What is not known is empty.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    names = columns(found)
    for line in (names, *([_cell(name, each.get(name)) for name in names] for each in found)):
        writer.writerow(line)
        yield text.getvalue()
        text.seek(0)
        text.truncate()


def to_arrow(found: Sequence[Row]) -> pa.Table:
    """The rows as a table of Arrow. What is not known is null; dates are timestamps without a time zone."""
    table = {}
    for name in columns(found):
        values = [_known(name, each.get(name)) for each in found]
        kind = _TYPES.get(name) or (pa.string() if all(each is None for each in values) else None)
        table[name] = pa.array(values, kind)
    return pa.table(table)


def write_parquet(found: Sequence[Row], to: BinaryIO) -> None:
    """Writes the rows as Parquet."""
    pq.write_table(to_arrow(found), to)


def encoded(answer: Mapping[str, Any], media_type: str) -> bytes:
    """An answer to a search in CSV or Parquet."""
    found = rows(answer)
    if media_type == CSV:
        return "".join(csv_pieces(found)).encode()
    to = io.BytesIO()
    write_parquet(found, to)
    return to.getvalue()


def _known(name: str, value: Any) -> Any:
    if isinstance(value, str):
        plain = _ODD.sub(_coded, value)
        return datetime.fromisoformat(plain) if plain and name == "taken" else plain or None
    return None if value == 0 and name in ("width", "height", "bytes") else value


def _cell(name: str, value: Any) -> str:
    value = _known(name, value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    text = value if isinstance(value, str) else repr(value)
    if isinstance(value, str) and _FORMULA.match(text):
        return f"./{text}" if name in _PATHS else f"'{text}"
    return text


def _coded(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"
