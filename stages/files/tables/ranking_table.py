"""Tables of rankings: the labelled neighbours of labelled pictures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stages.files.tables.columns import Column, ListColumn
from stages.files.tables.table import Table
from stages.record.origin import Origin


@dataclass(frozen=True, kw_only=True, eq=False)
class RankingTable(Table):
    """n labelled pictures, each with its nearest labelled ones, nearest first. The facts are those of the distances."""

    STATED = ("model", "backbone", "image_size", "fit")

    rows: Annotated[npt.NDArray[np.int32], Column("row", pa.int32(), ordered=True)]  # the picture's number, by id
    ids: Annotated[Sequence[str], Column("id", pa.string())]
    sources: Annotated[Sequence[str], Column("source", pa.string(), escaped=True)]  # the path of the first of each
    labels: Annotated[Sequence[str], Column("label", pa.string())]
    neighbours: Annotated[ListColumn, Column("neighbours", pa.list_(pa.int32()))]  # their rows
    distances: Annotated[ListColumn, Column("distances", pa.list_(pa.float32()))]
    origin: Origin
    metric: str
    k: int  # the neighbours that were asked for

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.array_equal(self.depths, self.distances.counts):
            raise ValueError("neighbours of a table of rankings do not match their distances")

    @property
    def depths(self) -> npt.NDArray[np.int64]:
        """The numbers of neighbours, int64 (n,)."""
        return self.neighbours.counts

    @property
    def facts(self) -> dict[str, Any]:
        """The facts as JSON values."""
        return {name: getattr(self.origin, name) for name in self.STATED} | {"metric": self.metric, "k": self.k}
