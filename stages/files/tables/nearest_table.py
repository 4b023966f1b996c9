"""The files of nearest pictures: for each picture of a segment its nearest in another, and the pictures of a segment.

`/nearest/<left>/<right>.npy` holds rows of the segments' tables of pictures, and distances;
`/pictures/<segment>.parquet` says which pictures these rows are. Knows no search and no stage.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages.datum.contract import StageError
from stages.datum.damage import LONGEST_HEADER, damage_as
from stages.files.tables.image_table import PictureTable

NEAREST = np.dtype([("row", "<i4"), ("distance", "<f4")])
"""One neighbour: the row of a picture in its segment's table, and its distance."""

NearestArray = np.ndarray[Any, np.dtype[np.void]]
"""NEAREST (n, k'): row i has the k' nearest pictures of picture i by distance, then by id."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PictureRows(PictureTable):
    """The n pictures of a segment, sorted by id, in the order of the rows of its files of nearest pictures."""

    metric: str  # of the distances, "euclidean" or "cosine"
    k: int  # neighbours that were asked for in each segment; a small segment has fewer


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
    with damage_as(lambda error: StageError(f"{path.name} is not a file of nearest pictures: {error}")):
        # Mapped first: an array of the size that a damaged header states may not fit into memory.
        mapped = np.load(path, mmap_mode="r", allow_pickle=False, max_header_size=LONGEST_HEADER)  # type: ignore[call-arg]
        nearest: NearestArray = np.array(mapped)
    if nearest.dtype != NEAREST or nearest.ndim != 2:
        raise StageError(f"{path.name} holds {nearest.dtype} of shape {nearest.shape}, not rows and distances")
    return nearest
