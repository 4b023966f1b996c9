"""Tables as dataclasses: each states its columns and facts once, and is checked, written and read by that.

Knows no table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stages.files.tables import columns
from stages.files.tables.columns import ArrowColumn, Column
from stages.files.tables.parquet import ParquetTarget, damage_refused, read_table, write_table
from stages.record import origin
from stages.record.origin import Origin

RowFilter = Callable[[pa.Table], npt.NDArray[np.bool_]]
"""Takes a table of n rows as Arrow has it; returns which rows are wanted, bool (n,)."""


@dataclass(frozen=True)
class TableLayout:
    """What a class of tables states: the columns by the names of their fields, the types of the facts by their names,
    which fields and files share, and the schema."""

    columns: dict[str, Column]
    facts: dict[str, type]
    schema: pa.Schema

    def names(self, stated: Sequence[str]) -> list[str]:
        """The names of the facts in a file. stated: those of the origin."""
        return [name for fact in self.facts for name in (stated if fact == "origin" else (fact,))]


class Table:
    """The base of tables: frozen dataclasses whose fields annotated with a Column are columns of n rows, and whose
    other fields, texts, numbers, tuples of texts and the Origin, are facts: a file has these in its metadata.

    Values are given as any sequences, and held as `stages.files.tables.columns` says. Equal tables give equal bytes.
    """

    STATED: ClassVar[Sequence[str]] = origin.COMPARED
    """The fields of the origin that a file states."""

    def __post_init__(self) -> None:
        """Raises ValueError for columns that differ in length or are not in order."""
        layout = _layout(type(self))
        for field, column in layout.columns.items():
            object.__setattr__(self, field, column.value(getattr(self, field)))
        if len({len(getattr(self, field)) for field in layout.columns}) > 1:
            raise ValueError("its columns differ in length")
        ordered = {field: column for field, column in layout.columns.items() if column.ordered}
        arrays = [pa.array(column.stored(getattr(self, field)), column.type) for field, column in ordered.items()]
        if not columns.ascending(arrays):
            raise ValueError(f"its rows must be distinct and sorted by {' and '.join(ordered)}")

    def __len__(self) -> int:
        return len(getattr(self, next(iter(_layout(type(self)).columns))))

    def __eq__(self, other: object) -> bool:
        names = [each.name for each in fields(self)]  # type: ignore[arg-type]
        return type(self) is type(other) and all(_same(getattr(self, name), getattr(other, name)) for name in names)

    @classmethod
    def of(cls, other: Table, **others: Any) -> Self:
        """The columns and facts of another table that this one has too, and others."""
        shared = {each.name for each in fields(cls)} & {each.name for each in fields(other)}  # type: ignore[arg-type]
        return cls(**{name: getattr(other, name) for name in shared} | others)

    @classmethod
    def of_rows(cls, rows: Sequence[Any], **facts: Any) -> Self:
        """The table of values that have the columns as attributes, named as in files."""
        found = {field: [getattr(row, each.name) for row in rows] for field, each in _layout(cls).columns.items()}
        return cls(**found, **facts)

    @classmethod
    def picked(cls, tables: Sequence[Table], places: Sequence[tuple[int, int]], **facts: Any) -> Self:
        """Rows of several tables, at least one, that have the columns of this class. places: of each row the number of
        its table, and the row there."""
        firsts = [0, *accumulate(map(len, tables))]
        rows = [firsts[number] + row for number, row in places]
        held = {name: columns.joined([getattr(each, name) for each in tables]) for name in _layout(cls).columns}
        return cls(**{name: columns.taken(values, rows) for name, values in held.items()}, **facts)

    @classmethod
    def joined(cls, tables: Sequence[Self]) -> Self:
        """The rows of several tables, at least one, one after the other, with the facts of the last."""
        held = {name: columns.joined([getattr(each, name) for each in tables]) for name in _layout(cls).columns}
        return replace(tables[-1], **held)  # type: ignore[type-var]

    def part(self, rows: slice | Sequence[int]) -> Self:
        """Some of the rows, in their order."""
        held = {name: getattr(self, name) for name in _layout(type(self)).columns}
        some = {
            name: values[rows] if isinstance(rows, slice) else columns.taken(values, rows)
            for name, values in held.items()
        }
        return replace(self, **some)  # type: ignore[type-var]

    def write(self, path: Path) -> None:
        """Writes the table; equal values give equal bytes."""
        layout = _layout(type(self))
        held = {each.name: each.stored(getattr(self, field)) for field, each in layout.columns.items()}
        facts: dict[str, str] = {}
        for name in layout.facts:
            facts |= _stored(name, getattr(self, name), self.STATED)
        write_table(held, layout.schema, facts, path)

    @classmethod
    def read(cls, file: ParquetTarget, wanted: RowFilter | None = None) -> Self:
        """Reads a table, or those of its rows that are wanted, from a path or a seekable binary file. Raises StageError
        for any file that `write` did not write."""
        layout = _layout(cls)
        with damage_refused(file):
            table, stated = read_table(file, layout.schema, layout.names(cls.STATED))
            if wanted is not None:  # before Python's objects are made
                table = table.take(np.flatnonzero(wanted(table)))
            held = {field: each.parsed(table[each.name]) for field, each in layout.columns.items()}
            facts = {
                name: Origin.parse(stated, cls.STATED) if name == "origin" else _parsed(stated[name], kind)
                for name, kind in layout.facts.items()
            }
            return cls(**held, **facts)


def column_names(table: type[Table]) -> list[str]:
    """The names of a class's columns in files."""
    return [column.name for column in _layout(table).columns.values()]


_LAYOUTS: dict[type, TableLayout] = {}


def _layout(table: type) -> TableLayout:
    """That of a class, found out once."""
    if table not in _LAYOUTS:
        _LAYOUTS[table] = _stated(table)
    return _LAYOUTS[table]


def _stated(table: type) -> TableLayout:
    held: dict[str, Column] = {}
    facts: dict[str, type] = {}
    hints = get_type_hints(table, include_extras=True)
    for name in (each.name for each in fields(table)):
        if get_origin(hints[name]) is Annotated:
            held[name] = get_args(hints[name])[1]
        else:
            facts[name] = get_origin(hints[name]) or hints[name]
    return TableLayout(held, facts, pa.schema([(each.name, each.type) for each in held.values()]))


def _stored(name: str, value: Any, stated: Iterable[str]) -> dict[str, str]:
    """A fact as a file has it. stated: the fields of an origin that it has."""
    if isinstance(value, Origin):
        return value.metadata(stated)
    return {name: json.dumps(value) if isinstance(value, tuple | list) else str(value)}


def _parsed(stated: str, kind: type) -> Any:
    """A fact of a file. Raises ValueError for one that `_stored` did not give."""
    if kind is not tuple:
        return kind(stated)
    texts = json.loads(stated)
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise ValueError("its names are not valid")
    return tuple(texts)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, ArrowColumn):
        return bool(one.stored.equals(other.stored))
    return bool(np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other)
