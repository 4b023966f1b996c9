"""A table of people made ready to be put: its rows by the library's files, its columns typed, and every reason for
which it cannot be put, with the line. Pure: knows no server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.library.attributes.column_values import read_column
from pipelines.library.attributes.picture_keys import AmbiguousKeyError, PictureKeys
from pipelines.library.attributes.table_files import StatedTable
from stages.datum.text_format import counted, enumerated, first_of
from stages.files.attribute_files import RESERVED
from stages.files.tables.annotation_table import PATH, TYPE_NAMES, TYPES, stated_only
from stages.files.tables.parquet import stored_text
from stages.record.attribute_schema import INTEGER, LABEL, NUMBER, TEXT
from stages.record.label_files import LineProblem

NONE = "none"
"""In place of a type: the column is left out."""

_EXAMPLES = 3


@dataclass
class PlannedTable:
    """A table to put, with stored paths; the problems of the file; and the pictures that are named by the end of their
    path alone, by their keys."""

    file: str
    problems: list[LineProblem]
    table: pa.Table = None
    by_end: dict[str, str] = field(default_factory=dict)

    def note(self, line: int, reason: str, unknown: bool = False) -> None:
        self.problems.append(LineProblem(self.file, line, reason, unknown))


def plan(
    stated: StatedTable,
    pictures: PictureKeys,
    others: Mapping[str, pa.Table],
    known: Mapping[str, str],
    wanted: Mapping[str, str],
) -> PlannedTable:
    """others: the tables that stay, by name. known: the types of their attributes. wanted: types for attributes, or
    NONE, by name. A row of a picture that the library lacks is a problem that is `unknown`, and in the table."""
    made = PlannedTable(stated.file, [*stated.problems])
    columns = {name: values for name, values in stated.columns.items() if wanted.get(name) != NONE}
    for name in sorted(columns.keys() & RESERVED):
        made.note(0, _taken_name(name))
    paths = _paths(made, stated, pictures)
    typed = {
        name: _typed(made, stated, name, columns[name], known.get(name, ""), wanted.get(name, ""))
        for name in columns
        if name not in RESERVED
    }
    rows = [row for row, path in enumerate(paths) if path]
    held = {PATH: pa.array([stored_text(paths[row]) for row in rows], pa.string())}
    held |= {name: array.take(pa.array(rows, pa.int64())) for name, array in typed.items() if array is not None}
    lines = {stored_text(paths[row]): stated.lines[row] for row in rows}
    made.table = stated_only(pa.table(held)).sort_by(PATH)
    for name, other in sorted(others.items()):
        _compare(made, lines, name, other)
    made.problems.sort(key=lambda each: each.line)
    return made


def _taken_name(name: str) -> str:
    if name == LABEL:
        return "labels are put with `lookalike classify add --labels FILE`; leave the column out with --type label=none"
    return (
        f"{name} is an attribute that lookalike gives to every picture: give the column another name with "
        f"--rename {name}=my_{name}, or leave it out with --type {name}=none"
    )


def _paths(made: PlannedTable, stated: StatedTable, pictures: PictureKeys) -> list[str]:
    """The file of each row, "" where there is none."""
    lines: dict[str, int] = {}
    found = []
    for line, key in zip(stated.lines, stated.keys, strict=True):
        path = ""
        try:
            path = pictures.find(key)
        except AmbiguousKeyError as error:
            called = f"{len(error.paths):,} pictures are called {key}"
            made.note(line, f"{called}: name the folder, too, as in {error.paths[0]}")
        else:
            if not key:
                made.note(line, "it names no picture")
            elif not path:
                made.note(line, f"no picture of the library is called {key}", unknown=True)
                path = key
            elif path != key:
                made.by_end[key] = path
        if path and lines.setdefault(path, line) != line:
            made.note(line, f"it states {path} again, after line {lines[path]}: leave one row for each picture")
            path = ""
        found.append(path)
    return found


def _typed(made: PlannedTable, stated: StatedTable, name: str, values: Sequence[Any], known: str, wanted: str) -> Any:
    """The values of a column as Arrow's array, None if they cannot be put."""
    given = wanted or (TEXT if known == TEXT else "")
    type, taken, problems = read_column(values, stated.has_types, stated.decimal_comma, given)
    if (known, type) == (NUMBER, INTEGER):
        type, taken, problems = read_column(values, stated.has_types, stated.decimal_comma, NUMBER)
    for row, reason in problems:
        made.note(stated.lines[row], f"{name}: {reason.replace('COLUMN', name)}")
    if known and type != known and {type, known} != {INTEGER, NUMBER} and any(value is not None for value in taken):
        row = next(row for row, value in enumerate(taken) if value is not None)
        made.note(
            stated.lines[row],
            f"{name} is of the type {known} in the tables there, and {type} here ({values[row]!r}): correct it, give "
            f"the column another name with --rename {name}=…, or remove the table that has it",
        )
        return None
    return None if problems else pa.array(taken, TYPES[type])


def _compare(made: PlannedTable, lines: Mapping[str, int], name: str, other: pa.Table) -> None:
    """Notes values that another table states differently."""
    shared = sorted(({*made.table.schema.names} & {*other.schema.names}) - {PATH})
    rows = pc.index_in(made.table[PATH], other[PATH].combine_chunks())
    for attribute in shared:
        mine, theirs = made.table[attribute], other[attribute].take(rows)
        if mine.type != theirs.type:
            mine, theirs = mine.cast(pa.float64()), theirs.cast(pa.float64())
        for row in pc.indices_nonzero(pc.fill_null(pc.not_equal(mine, theirs), fill_value=False)).to_pylist():
            path = made.table[PATH][row].as_py()
            made.note(
                lines[path],
                f"{attribute} of {path} is {mine[row].as_py()} here and {theirs[row].as_py()} in the table {name}: "
                f"correct one of them, or remove the other with `lookalike attributes remove {name}`",
            )


def words(planned: PlannedTable, name: str, replaces: bool) -> str:
    """What a table gives, in words."""
    schema = planned.table.schema
    columns = [f"{each} ({TYPE_NAMES[schema.field(each).type]})" for each in schema.names[1:]]
    replaced = ", in place of the table of this name" if replaces else ""
    ends = [f"{key} is {path}" for key, path in planned.by_end.items()]
    by_end = f"; {len(ends):,} by the end of their name, such as {first_of(ends, 1)}" if ends else ""
    of = counted(len(planned.table), "file gets", "files get")
    return f"{name}: {of} {enumerated(columns)}{replaced}{by_end}"
