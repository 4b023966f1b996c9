"""Tables of rankings: the labelled neighbours of labelled pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stages.files.tables.parquet import read_table, reader, write_table

FACTS = ("model", "backbone", "image_size", "fit", "metric", "k")

_SCHEMA = pa.schema(
    [
        ("row", pa.int32()),
        ("id", pa.string()),
        ("source", pa.string()),
        ("label", pa.string()),
        ("skipped", pa.int32()),
        ("neighbours", pa.list_(pa.int32())),
        ("distances", pa.list_(pa.float32())),
    ]
)


@dataclass(frozen=True)
class RankingTable:
    """n labelled pictures, each with its nearest labelled ones.

    rows: int32 (n,), ascending: the picture's number, by id. sources: the first of each, as
    Arrow stores it. skipped: int32 (n,), the nearer pictures without a label. depths: int64 (n,), the numbers of
    neighbours. neighbours: int32, their rows, and distances: float32, of all pictures one after the other, nearest
    first. facts: those of the distances, and the `k` that was asked for.
    """

    rows: npt.NDArray[np.int32]
    ids: Sequence[str]
    sources: Sequence[str]
    labels: Sequence[str]
    skipped: npt.NDArray[np.int32]
    depths: npt.NDArray[np.int64]
    neighbours: npt.NDArray[np.int32]
    distances: npt.NDArray[np.float32]
    facts: Mapping[str, str]

    def __post_init__(self) -> None:
        if {len(self.ids), len(self.sources), len(self.labels), len(self.skipped), len(self.depths)} != {
            len(self.rows)
        }:
            raise ValueError("columns of a table of rankings differ in length")
        if not len(self.neighbours) == len(self.distances) == int(self.depths.sum()):
            raise ValueError("neighbours of a table of rankings do not match their depths")


def write_rankings(rankings: RankingTable, path: Path) -> None:
    """Writes a table of rankings; equal values give equal bytes."""
    ends = pa.array(np.cumsum([0, *rankings.depths]), pa.int32())
    columns = {
        "row": rankings.rows,
        "id": rankings.ids,
        "source": rankings.sources,
        "label": rankings.labels,
        "skipped": rankings.skipped,
        "neighbours": pa.ListArray.from_arrays(ends, pa.array(rankings.neighbours, pa.int32())),
        "distances": pa.ListArray.from_arrays(ends, pa.array(rankings.distances, pa.float32())),
    }
    write_table(columns, _SCHEMA, {name: rankings.facts[name] for name in FACTS}, path)


@reader
def read_rankings(file: Path | BinaryIO) -> RankingTable:
    """Reads what write_rankings wrote, from a path or a seekable binary file. Raises StageError for any other file."""
    table, facts = read_table(file, _SCHEMA, *FACTS)
    lists = table["neighbours"].combine_chunks()
    return RankingTable(
        rows=table["row"].to_numpy(),
        ids=table["id"].to_pylist(),
        sources=table["source"].to_pylist(),
        labels=table["label"].to_pylist(),
        skipped=table["skipped"].to_numpy(),
        depths=lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64),
        neighbours=lists.flatten().to_numpy(),
        distances=table["distances"].combine_chunks().flatten().to_numpy(),
        facts=facts,
    )
