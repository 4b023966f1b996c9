"""Tables of results: the nearest pictures of one segment for the queries of one entry."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from stages.files.tables.parquet import SOURCES, read_table, reader, stored_sources, true_sources, write_table
from stages.record.sources import Source

_SCHEMA = pa.schema(
    [
        ("query", pa.string()),
        ("rank", pa.int32()),
        ("id", pa.string()),
        ("distance", pa.float32()),
        ("sources", SOURCES),
        ("thumbnail", pa.binary()),
    ]
)


class NeighbourRow(NamedTuple):
    """One row of a table of results: `id` is the query's neighbour number `rank`."""

    query: str
    rank: int  # 0 is the nearest
    id: str
    distance: float
    sources: Sequence[Source]
    thumbnail: bytes | None


@dataclass(frozen=True)
class NeighbourTable:
    """Results of one entry's queries in one segment, as columns, ordered by query id and then by rank."""

    queries: Sequence[str]  # n ids of queries, each repeated once per neighbour
    ranks: "np.ndarray[Any, np.dtype[np.int32]]"  # (n,) int32, counted from 0 for each query
    ids: Sequence[str]  # n ids of library pictures
    distances: "np.ndarray[Any, np.dtype[np.float32]]"  # (n,) float32
    sources: Sequence[Sequence[Source]]  # n, of the library pictures
    thumbnails: Sequence[bytes | None]  # n JPEG files, None if the sheet does not show the query
    model: str  # identity hash of the backbone
    fit: str  # how the pictures fill their squares, one of stages.record.framing.FITS
    metric: str  # "euclidean" or "cosine"
    k: int  # how many neighbours were asked for; a smaller segment gives fewer rows
    backbone: str = ""  # its name and size, for people

    def __post_init__(self) -> None:
        lengths = {len(self.ranks), len(self.ids), len(self.distances), len(self.sources), len(self.thumbnails)}
        if lengths != {len(self.queries)}:
            raise ValueError("columns of a table of neighbours differ in length")
        order = list(zip(self.queries, (int(rank) for rank in self.ranks), strict=True))
        if any(a >= b for a, b in pairwise(order)):
            raise ValueError("rows of a table of neighbours must be ordered by query and rank")

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[NeighbourRow]:
        """The rows in order."""
        for row, query in enumerate(self.queries):
            yield NeighbourRow(
                query,
                int(self.ranks[row]),
                self.ids[row],
                float(self.distances[row]),
                self.sources[row],
                self.thumbnails[row],
            )


RowFilter = Callable[[Sequence[str], "np.ndarray[Any, np.dtype[np.float32]]"], "np.ndarray[Any, np.dtype[np.bool_]]"]
"""Takes the queries and the distances (float32) of n rows; returns which rows are wanted, bool (n,)."""


def write_neighbours(neighbours: NeighbourTable, path: Path) -> None:
    """Writes a table of results; equal values give equal bytes."""
    facts = {
        "model": neighbours.model,
        "fit": neighbours.fit,
        "metric": neighbours.metric,
        "k": str(neighbours.k),
        "backbone": neighbours.backbone,
    }
    columns = {
        "query": neighbours.queries,
        "rank": neighbours.ranks,
        "id": neighbours.ids,
        "distance": neighbours.distances,
        "sources": stored_sources(neighbours.sources),
        "thumbnail": neighbours.thumbnails,
    }
    write_table(columns, _SCHEMA, facts, path)


@reader
def read_neighbours(file: Path | BinaryIO, wanted: RowFilter | None = None) -> NeighbourTable:
    """Reads what write_neighbours wrote, from a path or a seekable binary file: all rows or the wanted ones.

    Raises StageError for any other file.
    """
    table, facts = read_table(file, _SCHEMA, "model", "fit", "metric", "k", "backbone")
    queries = table["query"].to_pylist()
    if wanted is not None:  # before converting sources and thumbnails, the bulk of a row
        chosen = np.flatnonzero(wanted(queries, table["distance"].to_numpy()))
        table, queries = table.take(chosen), [queries[row] for row in chosen.tolist()]
    return NeighbourTable(
        queries=queries,
        ranks=table["rank"].to_numpy(),
        ids=table["id"].to_pylist(),
        distances=table["distance"].to_numpy(),
        sources=true_sources(table["sources"].to_pylist()),
        thumbnails=table["thumbnail"].to_pylist(),
        model=facts["model"],
        fit=facts["fit"],
        metric=facts["metric"],
        k=int(facts["k"]),
        backbone=facts["backbone"],
    )
