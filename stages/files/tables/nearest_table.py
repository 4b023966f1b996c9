"""The files of nearest pictures: for each picture of a segment its nearest in another, and the pictures of a segment.

`/nearest/<left>/<right>.npy` holds rows of the segments' tables of pictures, and distances;
`/pictures/<segment>.parquet` says which pictures these rows are. Knows no search and no stage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from stages.datum.contract import StageError
from stages.datum.damage import LONGEST_HEADER, is_damage
from stages.files.tables.parquet import SOURCES, SourceColumn, read_table, reader, true_sources, write_table
from stages.record.sources import Source

NEAREST = np.dtype([("row", "<i4"), ("distance", "<f4")])
"""One neighbour: the row of a picture in its segment's table, and its distance."""

NearestArray = np.ndarray[Any, np.dtype[np.void]]
"""NEAREST (n, k'): row i has the k' nearest pictures of picture i by distance, then by id."""

_SCHEMA = pa.schema([("id", pa.string()), ("sources", SOURCES)])
_FACTS = ("model", "image_size", "fit", "dimension", "backbone", "metric", "k")


@dataclass(frozen=True)
class PictureRows:
    """The n pictures of a segment, sorted by id, in the order of the rows of its files of nearest pictures."""

    ids: Sequence[str]  # n × 64 hex digits, strictly ascending
    sources: Sequence[Sequence[Source]]  # n × at least one
    model: str  # identity hash of the backbone
    image_size: int  # side of the normalised pictures in pixels
    fit: str  # how they fill their squares, one of stages.record.framing.FITS
    dimension: int  # length of a vector
    metric: str  # of the distances, "euclidean" or "cosine"
    k: int  # neighbours that were asked for in each segment; a small segment has fewer
    backbone: str = ""  # its name and size, for people

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.sources):
            raise ValueError("columns of a table of pictures differ in length")
        if any(a >= b for a, b in pairwise(self.ids)):
            raise ValueError("ids of a table of pictures must be distinct and sorted")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def origin(self) -> tuple[str, int, str, int, str, int]:
        """Everything that segments must have in common for their distances to be compared."""
        return self.model, self.image_size, self.fit, self.dimension, self.metric, self.k


def write_pictures(pictures: PictureRows, path: Path) -> None:
    """Writes the table of a segment's pictures; equal values give equal bytes."""
    columns = {"id": pictures.ids, "sources": SourceColumn.of(pictures.sources).stored}
    write_table(columns, _SCHEMA, {name: str(getattr(pictures, name)) for name in _FACTS}, path)


@reader
def read_pictures(file: Path | BinaryIO) -> PictureRows:
    """Reads what write_pictures wrote, from a path or a seekable binary file. Raises StageError for any other file."""
    table, facts = read_table(file, _SCHEMA, *_FACTS)
    return PictureRows(
        ids=table["id"].to_pylist(),
        sources=true_sources(table["sources"].to_pylist()),
        model=facts["model"],
        image_size=int(facts["image_size"]),
        fit=facts["fit"],
        dimension=int(facts["dimension"]),
        metric=facts["metric"],
        k=int(facts["k"]),
        backbone=facts["backbone"],
    )


def as_nearest(
    rows: "np.ndarray[Any, np.dtype[np.int64]]", distances: "np.ndarray[Any, np.dtype[np.float32]]"
) -> NearestArray:
    """Rows, int64 (n, k'), and distances, float32 (n, k'), in one array."""
    nearest = np.empty(rows.shape, dtype=NEAREST)
    nearest["row"], nearest["distance"] = rows, distances
    return nearest


def write_nearest(nearest: NearestArray, path: Path) -> None:
    """Writes nearest pictures as NumPy's .npy."""
    np.save(path, nearest)


def read_nearest(path: Path) -> NearestArray:
    """Reads what write_nearest wrote, into memory. Raises StageError for any other file; pickled objects are never
    loaded."""
    try:
        # Mapped first: an array of the size that a damaged header states may not fit into memory.
        mapped = np.load(path, mmap_mode="r", allow_pickle=False, max_header_size=LONGEST_HEADER)  # type: ignore[call-arg]
        nearest: NearestArray = np.array(mapped)
    except Exception as error:
        if not is_damage(error):
            raise
        raise StageError(f"{path.name} is not a file of nearest pictures: {error}") from error
    if nearest.dtype != NEAREST or nearest.ndim != 2:
        raise StageError(f"{path.name} holds {nearest.dtype} of shape {nearest.shape}, not rows and distances")
    return nearest
