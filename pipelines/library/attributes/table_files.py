"""Tables as people have them: CSV, JSON Lines and Parquet, read as columns of values with the line of each row.

Knows neither pictures nor types: what a text means is decided for a whole column, elsewhere.
"""

import codecs
import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import LookalikeError
from stages.datum.text_format import first_of
from stages.record.label_files import LineProblem

_JSON = (".jsonl", ".ndjson", ".json")
SUFFIXES = (".csv", ".tsv", ".txt", *_JSON, ".parquet")

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SEPARATORS = (",", ";", "\t")
_SHOWN = 8


@dataclass
class StatedTable:
    """A table of n rows as a file states it. lines: of each row; of Parquet its number. keys: the pictures that the
    rows name. columns: by the name of the attribute, n values each: None, texts, or values of the file's own types.
    has_types: whether texts are texts, and no numbers. decimal_comma: whether numbers may be written with a comma."""

    file: str
    lines: Sequence[int]
    keys: Sequence[str]
    columns: Mapping[str, Sequence[Any]]
    has_types: bool = True
    decimal_comma: bool = False
    problems: list[LineProblem] = field(default_factory=list)


class _Cells(NamedTuple):
    """The headings of a file, and its rows by line, each with a value for every heading. separator: of CSV."""

    headings: Sequence[str]
    rows: Sequence[tuple[int, Sequence[Any]]]
    separator: str = ""
    problems: Sequence[LineProblem] = ()


def attribute_name(text: str) -> str:
    """The name of an attribute for the heading of a column: in lower case, and with _ for spaces and signs, so that it
    needs no quotes in a filter."""
    name = re.sub(r"\W+", "_", unicodedata.normalize("NFC", text).strip().lower()).strip("_")
    return f"_{name}" if name[:1].isdigit() else name


def read_table(path: Path, key: str, renamed: Mapping[str, str]) -> StatedTable:
    """A file as a table. key: the heading of the column that names pictures. renamed: other names for attributes, by
    their headings. Raises LookalikeError for a file that is no table, or lacks the column."""
    file, cells = path.name, _cells(path)
    keys = [place for place, each in enumerate(cells.headings) if attribute_name(each) == attribute_name(key)]
    if len(keys) != 1:
        there = first_of([heading for heading in cells.headings if heading.strip()], _SHOWN)
        raise LookalikeError(f"{file} has no column {key}: name the one with the pictures, with --key ({there})")
    names = dict(_names(file, cells.headings, renamed, keys[0]))
    if not names or not cells.rows:
        raise LookalikeError(f"{file} states nothing: it needs a column besides {key}, and a row for each picture")
    return StatedTable(
        file,
        [line for line, _ in cells.rows],
        ["" if row[keys[0]] is None else str(row[keys[0]]).strip() for _, row in cells.rows],
        {name: [row[place] for _, row in cells.rows] for place, name in names.items()},
        has_types=not cells.separator,
        decimal_comma=cells.separator == ";",
        problems=[*cells.problems],
    )


def _cells(path: Path) -> _Cells:
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise LookalikeError(
            f"{path.name} is not a table: a table is CSV, JSON Lines or Parquet ({', '.join(SUFFIXES)})"
        )
    try:
        if kind == ".parquet":
            return _from_parquet(path)
        content = path.read_bytes()
    except OSError as error:
        raise LookalikeError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        text = content.decode("utf-16" if content.startswith(_UTF_16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise LookalikeError(f"{path.name}, line {line}: it is not UTF-8: save the table as UTF-8") from error
    return _from_json(path.name, text) if kind in _JSON else _from_csv(path.name, text)


def _from_csv(file: str, text: str) -> _Cells:
    separator = max(_SEPARATORS, key=next(iter(text.splitlines()), "").count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows: list[tuple[int, list[str]]] = []
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((line, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        raise LookalikeError(f"{file}, line {line}: it is not valid CSV ({error})") from error
    if not rows:
        raise LookalikeError(f"{file} is empty: its first line should name the columns, such as path,owner")
    (_, headings), *rows = rows
    width = len(headings)
    while width and not headings[width - 1].strip() and not any("".join(row[width - 1 : width]) for _, row in rows):
        width -= 1  # a spreadsheet's empty columns
    if width < len(headings):
        headings, rows = headings[:width], [(at, row[:width]) for at, row in rows]
    reason = "it has {} cells, and the first line {}"
    problems = [LineProblem(file, at, reason.format(len(row), width)) for at, row in rows if len(row) != width]
    return _Cells(headings, [each for each in rows if len(each[1]) == width], separator, problems)


def _from_json(file: str, text: str) -> _Cells:
    rows: list[tuple[int, dict[str, Any]]] = []
    for line, each in enumerate(text.split("\n"), 1):
        if not each.strip():
            continue
        try:
            row = json.loads(each)
        except ValueError as error:
            why = f"{file}, line {line}: it is not JSON ({error}): each line of the file should be one object"
            raise LookalikeError(why) from error
        if not isinstance(row, dict):
            raise LookalikeError(f"{file}, line {line}: each line should be one object in braces")
        rows.append((line, row))
    headings = [*dict.fromkeys(name for _, row in rows for name in row)]
    return _Cells(headings, [(line, [row.get(name) for name in headings]) for line, row in rows])


def _from_parquet(path: Path) -> _Cells:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, ValueError) as error:
        raise LookalikeError(f"{path.name} is not a Parquet file that can be read: {error}") from error
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return _Cells(table.column_names, [*enumerate(rows, 1)])


def _names(file: str, headings: Sequence[str], renamed: Mapping[str, str], key: int) -> Iterator[tuple[int, str]]:
    """The place and the attribute of each column but the key's."""
    seen: dict[str, str] = {}
    for place, heading in enumerate(map(str.strip, headings)):
        if place == key:
            continue
        name = renamed.get(heading, renamed.get(attribute_name(heading), attribute_name(heading)))
        if not name:
            raise LookalikeError(f"{file}: column {place + 1} has no name in the first line")
        if name in seen:
            raise LookalikeError(
                f"{file}: the columns {seen[name]} and {heading} are both {name}: tell them apart with --rename"
            )
        seen[name] = heading
        yield place, name
