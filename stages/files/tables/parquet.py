"""Tables as Parquet files: equal values give equal bytes, for one version of pyarrow. Knows columns and types only."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from stages.datum.contract import StageError
from stages.datum.damage import damage_as

ParquetTarget = Path | BinaryIO

_ROWS_PER_GROUP = 1 << 16  # it determines the file's bytes, so it must not be a default that may change

# Arrow's strings are strict UTF-8, but file names need not be. NUL cannot occur in a name, so it begins the escape.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_STORED = re.compile("\0([0-9a-f]{4})")


def stored_text(path: str) -> str:
    """A text as tables hold it: the inverse of `true_text`."""
    return _UNSTORABLE.sub(lambda c: f"\0{ord(c[0]):04x}", path)


def true_text(stored: str) -> str:
    """A text of a table as it was: file names need not be what Arrow can hold."""
    return _STORED.sub(lambda c: chr(int(c[1], 16)), stored) if "\0" in stored else stored


def write_table(columns: Mapping[str, Any], schema: pa.Schema, facts: Mapping[str, str], path: ParquetTarget) -> None:
    """Writes the columns, in the schema's types, and the facts as the file's metadata."""
    with pq.ParquetWriter(
        path,
        schema,
        version="2.6",
        data_page_version="1.0",
        compression=_compression(schema),
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
    ) as writer:
        writer.write_table(pa.table(dict(columns), schema=schema), row_group_size=_ROWS_PER_GROUP)
        writer.add_key_value_metadata(dict(sorted(facts.items())))


def damage_refused(file: ParquetTarget) -> AbstractContextManager[None]:
    """Raises StageError for whatever a damaged or foreign file leads to. Arrow does not check all that it reads, so
    that some of it is found only where values are converted."""

    def described(error: Exception) -> StageError:
        return StageError(f"{_name(file)} is not a table that lookalike wrote: {' '.join(str(error).split())}")

    return damage_as(described)


def read_table(file: ParquetTarget, schema: pa.Schema, facts: Iterable[str]) -> tuple[pa.Table, dict[str, str]]:
    """A table that has the schema's columns, and its metadata, which has these facts. Within `damage_refused`.

    Raises StageError if the file is a table without them, and whatever a damaged one makes Arrow raise.
    """
    table = read_columns(file)
    metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    present = _columns(table.schema) | metadata.keys()
    missing = [name for name in (*_columns(schema), *facts) if name not in present]
    if missing:
        raise StageError(
            f"{_name(file)} is not a table that this version of lookalike wrote: it lacks {', '.join(missing)}. "
            "Reprocess the pipeline that wrote it: lookalike deploy --reprocess PIPELINE"
        )
    for column in schema:
        if not _holds(table.schema.field(column.name).type, column.type):
            raise ValueError(f"its column {column.name} holds {table.schema.field(column.name).type}")
    return table, metadata


def read_columns(file: ParquetTarget, names: Sequence[str] | None = None) -> pa.Table:
    """All columns of a table, or those with these names. Raises whatever a damaged file makes Arrow raise."""
    with pq.ParquetFile(file) as opened:
        # Arrow takes memory for as many rows as a group states, which may be any number.
        groups = opened.metadata.num_row_groups
        if any(opened.metadata.row_group(group).num_rows > _ROWS_PER_GROUP for group in range(groups)):
            raise ValueError(f"a group of it has more than {_ROWS_PER_GROUP:,} rows")
        return opened.read(columns=names)


def _holds(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of one type have all of another: of structs, the fields that are wanted."""
    if pa.types.is_list(wanted):
        return pa.types.is_list(found) and _holds(found.value_type, wanted.value_type)
    if not pa.types.is_struct(wanted):
        return bool(found == wanted)
    return pa.types.is_struct(found) and all(
        found.get_field_index(each.name) >= 0 and _holds(found.field(each.name).type, each.type) for each in wanted
    )


def _compression(schema: pa.Schema) -> dict[str, str]:
    """The compression of each column: none for JPEGs. Ids and hashes are hex digits, and many rows have the same query:
    compressed, search's tables are a third as large."""
    chosen: dict[str, str] = {}
    for column in schema:
        inner = [".list.element"] if pa.types.is_list(column.type) else [""]
        if pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type):
            inner = [f".list.element.{field}" for field in column.type.value_type.names]
        chosen |= {f"{column.name}{each}": "NONE" if column.type == pa.binary() else "ZSTD" for each in inner}
    return chosen


def _columns(schema: pa.Schema) -> dict[str, None]:
    """The names of the columns, and of the fields in their structs, in order."""
    of_lists = {each.name: each.type.value_type for each in schema if pa.types.is_list(each.type)}
    inner = {name: type.names for name, type in of_lists.items() if pa.types.is_struct(type)}
    return dict.fromkeys(name for column in schema.names for name in (column, *inner.get(column, ())))


def _name(file: ParquetTarget) -> str:
    return file.name if isinstance(file, Path) else str(getattr(file, "name", "the stream"))
