"""Tables as people have them: CSV, JSON Lines and Parquet, read as columns of values with the line of each row.

Knows neither pictures nor types: what a text means is decided for a whole column, elsewhere.
"""

import codecs
import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import LookalikeError
from stages.datum.text_format import first_of
from stages.record.label_files import LabelProblem

SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet")

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SEPARATORS = (",", ";", "\t")
_SHOWN = 8


class TableProblem(NamedTuple):
    """A line of a file that cannot be put, or all of it (line 0), with the reason. unknown: whether the line names no
    picture of the library, and is right otherwise."""

    file: str
    line: int
    reason: str
    unknown: bool = False

    @property
    def said(self) -> str:
        """The problem in words, for people."""
        return LabelProblem(self.file, self.line, self.reason).said


@dataclass
class StatedTable:
    """A table of n rows as a file states it. lines: of each row; of Parquet its number. keys: the pictures that the
    rows name. columns: by the name of the attribute, n values each: None, texts, or values of the file's own types.
    has_types: whether texts are texts, and no numbers. decimal_comma: whether numbers may be written with a comma."""

    file: str
    lines: list[int]
    keys: list[str]
    columns: dict[str, list[Any]]
    has_types: bool = True
    decimal_comma: bool = False
    problems: list[TableProblem] = field(default_factory=list)


def attribute_name(text: str) -> str:
    """The name of an attribute for the heading of a column: in lower case, and with _ for spaces and signs, so that it
    needs no quotes in a filter."""
    name = re.sub(r"\W+", "_", unicodedata.normalize("NFC", text).strip().lower()).strip("_")
    return f"_{name}" if name[:1].isdigit() else name


def read_table(path: Path, key: str, renamed: Mapping[str, str]) -> StatedTable:
    """A file as a table. key: the heading of the column that names pictures. renamed: other names for attributes, by
    their headings. Raises LookalikeError for a file that is no table, or lacks the column."""
    kind = path.suffix.lower()
    try:
        if kind == ".parquet":
            return _from_parquet(path, key, renamed)
        content = path.read_bytes()
    except OSError as error:
        raise LookalikeError(f"{path} cannot be read: {error.strerror or error}") from error
    if kind in (".jsonl", ".ndjson", ".json"):
        return _from_json(path, content, key, renamed)
    if kind in SUFFIXES:
        return _from_csv(path, content, key, renamed)
    raise LookalikeError(f"{path.name} is not a table: a table is CSV, JSON Lines or Parquet ({', '.join(SUFFIXES)})")


def _from_csv(path: Path, content: bytes, key: str, renamed: Mapping[str, str]) -> StatedTable:
    text = _decoded(path, content)
    heading = next(iter(text.splitlines()), "")
    separator = max(_SEPARATORS, key=heading.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    cells: list[list[str]] = []
    lines: list[int] = []
    problems: list[TableProblem] = []
    line = 1
    try:
        for row in rows:
            if any(cell.strip() for cell in row):
                cells.append(row)
                lines.append(line)
            line = rows.line_num + 1
    except csv.Error as error:
        raise LookalikeError(f"{path.name}, line {line}: it is not valid CSV ({error})") from error
    if not cells:
        raise LookalikeError(f"{path.name} is empty: its first line should name the columns, such as path,owner")
    headings = cells[0]
    while headings and not headings[-1].strip() and all(len(row) < len(headings) or not row[-1] for row in cells):
        headings.pop()  # a spreadsheet's empty columns
        cells = [headings, *(row[: len(headings)] for row in cells[1:])]
    whole = []
    for at, row in zip(lines[1:], cells[1:], strict=True):
        if len(row) != len(headings):
            problems.append(TableProblem(path.name, at, f"it has {len(row)} cells, and the first line {len(headings)}"))
        else:
            whole.append((at, dict(zip(range(len(headings)), row, strict=True))))
    table = _table(path, key, renamed, headings, whole)
    return replace(table, has_types=False, decimal_comma=separator == ";", problems=problems)


def _decoded(path: Path, content: bytes) -> str:
    encoding = "utf-16" if content.startswith(_UTF_16) else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise LookalikeError(f"{path.name}, line {line}: it is not UTF-8: save the table as UTF-8") from error


def _from_json(path: Path, content: bytes, key: str, renamed: Mapping[str, str]) -> StatedTable:
    rows = []
    for line, text in enumerate(_decoded(path, content).split("\n"), 1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except ValueError as error:
            why = f"{path.name}, line {line}: it is not JSON ({error}): each line of the file should be one object"
            raise LookalikeError(why) from error
        if not isinstance(row, dict):
            raise LookalikeError(f"{path.name}, line {line}: each line should be one object in braces")
        rows.append((line, row))
    headings = [*dict.fromkeys(name for _, row in rows for name in row)]
    numbers = {name: number for number, name in enumerate(headings)}
    places = [(line, {numbers[name]: value for name, value in row.items()}) for line, row in rows]
    return _table(path, key, renamed, headings, places)


def _from_parquet(path: Path, key: str, renamed: Mapping[str, str]) -> StatedTable:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, ValueError) as error:
        raise LookalikeError(f"{path.name} is not a Parquet file that can be read: {error}") from error
    values = [column.to_pylist() for column in table.columns]
    rows = [(row + 1, {at: each[row] for at, each in enumerate(values)}) for row in range(len(table))]
    return _table(path, key, renamed, table.column_names, rows)


def _table(
    path: Path,
    key: str,
    renamed: Mapping[str, str],
    headings: Sequence[str],
    rows: Iterable[tuple[int, Mapping[int, Any]]],
) -> StatedTable:
    """The table of rows, given by line and the number of the column."""
    wanted = [number for number, heading in enumerate(headings) if attribute_name(heading) == attribute_name(key)]
    if len(wanted) != 1:
        there = first_of([heading for heading in headings if heading.strip()], _SHOWN)
        raise LookalikeError(f"{path.name} has no column {key}: name the one with the pictures, with --key ({there})")
    names = dict(_names(path, headings, renamed, wanted[0]))
    table = StatedTable(path.name, [], [], {name: [] for name in names.values()})
    for line, row in rows:
        table.lines.append(line)
        given = row.get(wanted[0])
        table.keys.append("" if given is None else str(given).strip())
        for number, name in names.items():
            table.columns[name].append(row.get(number))
    if not names or not table.lines:
        raise LookalikeError(f"{path.name} states nothing: it needs a column besides {key}, and a row for each picture")
    return table


def _names(path: Path, headings: Sequence[str], renamed: Mapping[str, str], key: int) -> Iterator[tuple[int, str]]:
    """The number and the attribute of each column but the key's."""
    seen: dict[str, str] = {}
    for number, heading in enumerate(headings):
        if number == key:
            continue
        name = renamed.get(heading.strip(), renamed.get(attribute_name(heading), attribute_name(heading)))
        if not name:
            raise LookalikeError(f"{path.name}: column {number + 1} has no name in the first line")
        if name in seen:
            raise LookalikeError(
                f"{path.name}: the columns {seen[name]} and {heading.strip()} are both {name}: tell them apart with "
                "--rename"
            )
        seen[name] = heading.strip()
        yield number, name
