"""Tables of pairs: pictures of one or two segments that are near each other, and pictures with several sources."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow.compute import index_in

from stages.files.tables.parquet import SOURCES, read_table, reader, stored_sources, true_sources, write_table
from stages.record.hashes import BitCounts
from stages.record.sources import Source

_SIDES = ("first", "second")
_SCHEMA = pa.schema(
    [
        *((side, pa.string()) for side in _SIDES),
        ("distance", pa.float32()),
        ("bits", pa.uint8()),
        ("turn", pa.uint8()),
        ("near", pa.bool_()),
        *((f"{side}_sources", SOURCES) for side in _SIDES),
        *((f"{side}_thumbnail", pa.binary()) for side in _SIDES),
    ]
)


@dataclass(frozen=True)
class PairTable:
    """n pairs of m pictures. Pairs name rows of the pictures, each pair once, ordered by first and then by second."""

    ids: Sequence[str]  # m × 64 hex digits, strictly ascending, each in a pair
    sources: Sequence[Sequence[Source]]  # m × at least one
    thumbnails: Sequence[bytes]  # m JPEG files
    first: "np.ndarray[Any, np.dtype[np.int32]]"  # (n,) int32, rows of pictures
    second: "np.ndarray[Any, np.dtype[np.int32]]"  # (n,) int32, > first; = first for a picture with several sources
    distances: "np.ndarray[Any, np.dtype[np.float32]]"  # (n,) float32, 0 for a picture and itself
    bits: BitCounts  # (n,) uint8, in which the perceptual hashes differ
    turns: BitCounts  # (n,) uint8, the turn that lays the second picture on the first, see stages.record.hashes
    near: "np.ndarray[Any, np.dtype[np.bool_]]"  # (n,) bool, false only for a picture of which files may differ unseen
    model: str  # identity hash of the backbone
    fit: str  # how the pictures fill their squares, one of stages.record.framing.FITS
    metric: str  # "euclidean" or "cosine"
    threshold: float  # the largest distance that was looked for
    hash_bits: int  # the most bits
    backbone: str = ""  # its name and size, for people

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.sources) == len(self.thumbnails):
            raise ValueError("the columns of the pictures of a table of pairs differ in length")
        columns = (self.second, self.distances, self.bits, self.turns, self.near)
        if any(len(column) != len(self.first) for column in columns):
            raise ValueError("the columns of a table of pairs differ in length")
        if any(a >= b for a, b in pairwise(self.ids)):
            raise ValueError("the ids of a table of pairs must be distinct and sorted")
        order = self.first.astype(np.int64) * len(self.ids) + self.second
        if np.any(np.diff(order) <= 0) or np.any(self.first > self.second):
            raise ValueError("the pairs of a table of pairs must be distinct and sorted")

    def __len__(self) -> int:
        return len(self.first)


def write_pairs(pairs: PairTable, path: Path) -> None:
    """Writes a table of pairs; equal values give equal bytes.

    A row has the ids of both pictures; the sources and the thumbnail of a picture are in the first row that names it,
    on the side of its first mention there, since a picture may be in many pairs.
    """
    facts = {
        "model": pairs.model,
        "fit": pairs.fit,
        "metric": pairs.metric,
        "threshold": repr(float(pairs.threshold)),
        "hash_bits": str(pairs.hash_bits),
        "backbone": pairs.backbone,
    }
    columns: dict[str, Any] = {
        "distance": pairs.distances,
        "bits": pairs.bits,
        "turn": pairs.turns,
        "near": pairs.near,
    }
    sides = {"first": pairs.first.tolist(), "second": pairs.second.tolist()}
    for side, rows in sides.items():
        columns[side] = [pairs.ids[row] for row in rows]
        columns[f"{side}_sources"], columns[f"{side}_thumbnail"] = [], []
    told: set[int] = set()
    for at in range(len(pairs)):
        for side, rows in sides.items():
            row = rows[at]
            columns[f"{side}_sources"].append(pairs.sources[row] if row not in told else None)
            columns[f"{side}_thumbnail"].append(pairs.thumbnails[row] if row not in told else None)
            told.add(row)
    for side in _SIDES:
        columns[f"{side}_sources"] = [
            None if row is None else stored_sources([row])[0] for row in columns[f"{side}_sources"]
        ]
    write_table(columns, _SCHEMA, facts, path)


@reader
def read_pairs(file: Path | BinaryIO) -> PairTable:
    """Reads what write_pairs wrote, from a path or a seekable binary file. Raises StageError for any other file.

    Beside the pictures it takes about 300 bytes of memory for a pair.
    """
    table, facts = read_table(file, _SCHEMA, "model", "fit", "metric", "threshold", "hash_bits", "backbone")
    known = {id: (tuple(sources), thumbnail) for side in _SIDES for id, sources, thumbnail in _told(table, side)}
    ids = sorted(known)
    first, second = (index_in(table[side], value_set=pa.array(ids, pa.string())).to_numpy() for side in _SIDES)
    return PairTable(
        ids=ids,
        sources=[known[id][0] for id in ids],
        thumbnails=[known[id][1] for id in ids],
        first=first,
        second=second,
        distances=table["distance"].to_numpy(),
        bits=table["bits"].to_numpy(),
        turns=table["turn"].to_numpy(),
        near=table["near"].to_numpy(),
        model=facts["model"],
        fit=facts["fit"],
        metric=facts["metric"],
        threshold=float(facts["threshold"]),
        hash_bits=int(facts["hash_bits"]),
        backbone=facts["backbone"],
    )


def _told(table: pa.Table, side: str) -> Iterator[tuple[str, Sequence[Source], bytes]]:
    """The pictures whose sources and thumbnails are on this side."""
    told = table.filter(table[f"{side}_sources"].is_valid())
    sources = true_sources(told[f"{side}_sources"].to_pylist())
    yield from zip(told[side].to_pylist(), sources, told[f"{side}_thumbnail"].to_pylist(), strict=True)
