"""Annotations: what people state of the files of a segment's pictures, as a table with a row for each file and a column
for each attribute.

Unlike other tables its columns are not known before it is read. Knows no labels, no schema of a library, and no stage.
"""

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from stages.datum.contract import StageError
from stages.files.tables.columns import ascending
from stages.files.tables.parquet import ParquetTarget, damage_refused, read_columns, write_table
from stages.record.attribute_schema import BOOLEAN, DATE, INTEGER, NUMBER, TEXT

FILE = "annotations.parquet"
"""The file of a segment in the index, if annotations are deployed."""

PATH = "path"
"""The column of the stored paths of files, see stages.files.tables.parquet.stored_text."""

TYPES = {TEXT: pa.string(), INTEGER: pa.int64(), NUMBER: pa.float64(), BOOLEAN: pa.bool_(), DATE: pa.timestamp("s")}
"""The types of attributes by their names."""

TYPE_NAMES = {type: name for name, type in TYPES.items()}
"""And the other way round."""


def stated_only(table: pa.Table) -> pa.Table:
    """The annotations without the files and the attributes that have no values."""
    names = [name for name in table.schema.names if name == PATH or table[name].null_count < len(table)]
    missing = [pc.is_null(table[name]) for name in names if name != PATH]
    if not missing:
        return table.select(names).slice(0, 0)
    return table.select(names).filter(pc.invert(reduce(pc.and_, missing)))


def write_annotations(table: pa.Table, path: ParquetTarget) -> None:
    """Writes the column `path`, of distinct stored paths, and columns of TYPES. Equal values give equal bytes, in
    whatever order the rows and the columns are."""
    names = [PATH, *sorted({*table.schema.names} - {PATH})]
    rows = table.sort_by(PATH)
    schema = pa.schema([(name, table.schema.field(name).type) for name in names])
    write_table({name: rows[name] for name in names}, schema, {}, path)


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
        return pc.cast(column, TYPES[DATE])
    if column.type not in TYPES.values():
        raise ValueError(f"it holds {column.type}")
    return column
