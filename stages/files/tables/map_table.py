"""The places of pictures on the map as a table. Knows no layout and no stage."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa

from stages.files.tables.columns import Column, Numbers
from stages.files.tables.table import Table
from stages.record.origin import Origin

SUFFIX = ".parquet"


@dataclass(frozen=True, kw_only=True, eq=False)
class MapTable(Table):
    """The pictures of a segment, sorted by id. clusters: -1 for a picture in none. stale: why none has a place, in
    words, "" where all have one.."""

    ids: Annotated[Sequence[str], Column("id", pa.string(), ordered=True)]
    x: Annotated[Numbers, Column("x", pa.float32())]
    y: Annotated[Numbers, Column("y", pa.float32())]
    clusters: Annotated[Numbers, Column("cluster", pa.int32())]
    origin: Origin
    stale: str = ""
