"""The columns that filters by attributes can use at a commit of the index: those of every library, and people's."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from stages.files.path_globs import FilterError
from stages.files.tables import annotation_table
from stages.filters.attribute_table import BUILT_IN, Attribute, annotated_columns
from stages.filters.where_clause import parse_where

_END = 1 << 20
"""Bytes at the end of a file of annotations, with the names of its columns."""


def check_where(connection: Connection, where: str, commit: str = "") -> None:
    """Refuses a filter that is not valid in the library. commit: of the index, by default the newest good one. Raises
    LookalikeError, which names the nearest column for one that is not there."""
    try:
        parse_where(where, connection.retry(_columns, connection, commit))
    except FilterError as error:
        raise LookalikeError(f"{error}; see `lookalike query -h`") from error


def _columns(connection: Connection, commit: str) -> Mapping[str, Attribute]:
    index = Repository(connection, "index", commit).good()
    files = [] if index is None else list(index.glob(f"/*/{annotation_table.FILE}"))
    ends = [index.read(each.path, max(0, each.size - _END)) for each in files if index is not None]
    return {**annotated_columns(pq.read_schema(pa.BufferReader(each)) for each in ends), **BUILT_IN}
