"""Tables of results: the nearest pictures of one segment for the queries of one entry."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stages.files.tables.columns import SOURCES, Column
from stages.files.tables.table import Table
from stages.record.origin import Origin
from stages.record.sources import Source


class NeighbourRow(NamedTuple):
    """One row of a table of results: `id` is the query's neighbour number `rank`."""

    query: str
    rank: int  # 0 is the nearest
    id: str
    distance: float
    sources: Sequence[Source]
    thumbnail: bytes | None


@dataclass(frozen=True, kw_only=True, eq=False)
class NeighbourTable(Table):
    """Results of one entry's queries in one segment, as columns, ordered by query id and then by rank."""

    STATED = ("model", "fit", "backbone")

    queries: Annotated[Sequence[str], Column("query", pa.string(), ordered=True)]  # each repeated once per neighbour
    ranks: Annotated[npt.NDArray[np.int32], Column("rank", pa.int32(), ordered=True)]  # from 0 for each query
    ids: Annotated[Sequence[str], Column("id", pa.string())]  # of library pictures
    distances: Annotated[npt.NDArray[np.float32], Column("distance", pa.float32())]
    sources: Annotated[Sequence[Sequence[Source]], Column("sources", SOURCES)]  # of the library pictures
    # JPEG files, None if the sheet does not show the query.
    thumbnails: Annotated[Sequence[bytes | None], Column("thumbnail", pa.binary(), optional=True)]
    origin: Origin
    metric: str  # "euclidean" or "cosine"
    k: int  # how many neighbours were asked for; a smaller segment gives fewer rows

    def __iter__(self) -> Iterator[NeighbourRow]:
        """The rows in order."""
        ranks, distances = self.ranks.tolist(), self.distances.tolist()
        rows = zip(self.queries, ranks, self.ids, distances, self.sources, self.thumbnails, strict=True)
        return (NeighbourRow(*row) for row in rows)
