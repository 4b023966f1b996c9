"""Tables of labelled pictures: the rows of a file of vectors, each with its label and thumbnail."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa

from stages.files.tables.columns import Column
from stages.files.tables.table import Table
from stages.record import origin
from stages.record.origin import Origin


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelTable(Table):
    """The n labelled pictures of a segment, sorted by id: the rows of a file of vectors (n, dimension). n may be 0."""

    STATED = origin.ALL

    ids: Annotated[Sequence[str], Column("id", pa.string(), ordered=True)]  # n × 64 hex digits
    sources: Annotated[Sequence[str], Column("source", pa.string(), escaped=True)]  # the path of the first of each
    labels: Annotated[Sequence[str], Column("label", pa.string())]
    thumbnails: Annotated[Sequence[bytes], Column("thumbnail", pa.binary())]  # JPEG files
    origin: Origin
    held_out: float = 0.0  # the share of pictures that are held out: stages.classify.training.splits
