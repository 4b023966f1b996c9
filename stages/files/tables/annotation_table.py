"""Annotations: what people state of the files of a segment's pictures, as a table with a row for each file and a column
for each attribute.

Unlike other tables its columns are not known before it is read. Knows no labels, no schema of a library, and no stage.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stages.datum.contract import StageError
from stages.files.tables.columns import ascending
from stages.files.tables.parquet import ParquetTarget, damage_refused, read_columns, stored_text, write_table

FILE = "annotations.parquet"
"""The file of a segment in the index, if annotations are deployed."""

PATH = "path"
"""The column of the stored paths of files, see stages.files.tables.parquet.stored_text."""

TYPES = {
    "text": pa.string(),
    "whole number": pa.int64(),
    "number": pa.float64(),
    "yes or no": pa.bool_(),
    "date": pa.timestamp("s"),
}
"""The types of attributes by their names for people. A date is one with a time of day, and without a time zone."""


def write_annotations(values: Mapping[str, Mapping[str, Any]], types: Mapping[str, str], path: Path) -> None:
    """Writes a row for each file that has values. values: by the true path of the file, then by the attribute. types:
    one of TYPES for each attribute; those without values here get no column, so that a new attribute changes only the
    segments that have it. Equal values give equal bytes."""
    stored = {stored_text(file): given for file, given in values.items() if given}
    rows = sorted(stored)
    names = sorted({name for given in stored.values() for name in given})
    columns: dict[str, Sequence[Any]] = {PATH: rows}
    columns |= {name: [stored[row].get(name) for row in rows] for name in names}
    schema = pa.schema([(PATH, pa.string()), *((name, TYPES[types[name]]) for name in names)])
    write_table(columns, schema, {}, path)


def read_annotations(file: ParquetTarget) -> pa.Table:
    """The annotations of a segment: rows sorted by stored path, the column `path` and the attributes, sorted by name,
    each of one of TYPES, null where a file has no value. Another segment may lack an attribute, and has then no value
    of it. Raises StageError for any file that `write_annotations` did not write."""
    with damage_refused(file):
        table = read_columns(file)
        names = table.schema.names
        if names[:1] != [PATH] or names[1:] != sorted({*names} - {PATH}):
            raise StageError("its columns are not those of annotations")
        table = pa.table({name: _typed(table[name]) for name in names}, metadata=None)
        table.validate(full=True)
        if table[PATH].type != pa.string() or table[PATH].null_count:
            raise ValueError("it lacks paths")
        if not ascending([table[PATH].combine_chunks()]):
            raise ValueError("its paths must be distinct and sorted")
        return table


def _typed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column in the type that was written. Parquet has no seconds, and holds them as milliseconds."""
    if pa.types.is_timestamp(column.type) and column.type.tz is None:
        return pc.cast(column, TYPES["date"])
    if column.type not in TYPES.values():
        raise ValueError(f"it holds {column.type}")
    return column
