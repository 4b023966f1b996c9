"""The repo `attributes`: tables that people have put, as /tables/<name>.parquet in the form of annotations, and the
schema of all of them.

Knows no command and no stage.
"""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stages.datum.contract import StageError, spool
from stages.files.tables import annotation_table
from stages.files.tables.annotation_table import PATH, TYPES
from stages.files.tables.image_table import PictureTable
from stages.files.tables.table import stated_columns
from stages.record.attribute_schema import AGAIN, DERIVED, DIRECTORY, LABEL, SCHEMA, SUFFIX, parse_schema
from stages.record.sources import Source

RESERVED = frozenset({*Source._fields, *(each.name for each in stated_columns(PictureTable).values()), *DERIVED, LABEL})
"""The names that no table may give to an attribute: lookalike itself has a meaning for them."""


class AttributeTables:
    """The tables of people together: no two of them state different values of one attribute of a file."""

    def __init__(self, types: Mapping[str, str], tables: Iterable[pa.Table]) -> None:
        self.types = types
        self._tables = [*tables]

    def of(self, paths: pa.Array) -> dict[str, Any]:
        """The values of each attribute for n stored paths: arrays (n,) of its type, null where no table has one."""
        places = [pc.index_in(paths, table[PATH].combine_chunks()) for table in self._tables]
        found = {}
        for name, type in sorted(self.types.items()):
            given = [
                table[name].cast(TYPES[type], safe=False).take(rows)  # whole numbers may be numbers elsewhere
                for table, rows in zip(self._tables, places, strict=True)
                if name in table.schema.names
            ]
            if given:
                found[name] = pc.coalesce(*given)
        return found


def read_attributes(repo: Path) -> AttributeTables:
    """All tables of the repo, whose files may be pipes. Raises StageError for files that no command wrote."""
    schema = repo / SCHEMA
    if not schema.exists():
        raise StageError(f"the repo attributes has no {SCHEMA}: {AGAIN}")
    try:
        types = parse_schema(schema.read_bytes())
    except ValueError as error:
        raise StageError(str(error)) from error
    tables = []
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        for file in sorted((repo / DIRECTORY).glob(f"*{SUFFIX}")):
            table = annotation_table.read_annotations(spool(file, Path(scratch)))
            if unknown := sorted({*table.schema.names} - {PATH, *types}):
                raise StageError(f"{file.name} has columns that {SCHEMA} lacks ({', '.join(unknown)}): {AGAIN}")
            tables.append(table)
    return AttributeTables(types, tables)
