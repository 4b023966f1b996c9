"""Tables of pictures with the places of their thumbnails, and in the index also of their vectors: in the files of the
parts that they came from, and of the pieces of a segment.

A search needs the thumbnails of few pictures, and they are as large as the vectors: so they lie apart, and are read one
by one. Knows no search and no stage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from stages.files.tables.columns import Column, Numbers
from stages.files.tables.image_table import ImageTable, PictureTable
from stages.files.thumbnail_files import ThumbnailPlace, ThumbnailPlaces
from stages.files.vector_files import VectorPlaces

TABLE = "images.parquet"


@dataclass(frozen=True, kw_only=True, eq=False)
class PlacedTable(PictureTable):
    """Pictures with the places of their thumbnails."""

    thumbnail_parts: Annotated[Numbers, Column("thumbnail_part", pa.int32())]  # of each its file in `parts`
    thumbnail_begins: Annotated[Numbers, Column("thumbnail_begin", pa.int64())]  # in bytes
    thumbnail_sizes: Annotated[Numbers, Column("thumbnail_size", pa.uint32())]  # in bytes
    parts: tuple[str, ...]  # the names of the files, sorted

    def __post_init__(self) -> None:
        super().__post_init__()
        self.thumbnails.check()

    @property
    def thumbnails(self) -> ThumbnailPlaces:
        """The places of the thumbnails."""
        return ThumbnailPlaces(self.parts, self.thumbnail_parts, self.thumbnail_begins, self.thumbnail_sizes)


@dataclass(frozen=True, kw_only=True, eq=False)
class PartTable(PlacedTable, ImageTable):
    """The pictures of a part that features computed, with the places of their thumbnails in the files of preprocess,
    which features never reads."""


@dataclass(frozen=True, kw_only=True, eq=False)
class IndexTable(PlacedTable):
    """The pictures of a segment: the rows of its vectors. The vector and the thumbnail of a picture lie in files of the
    same piece."""

    vector_rows: Annotated[Numbers, Column("vector_row", pa.uint32())]  # in the file of the piece

    @property
    def vectors(self) -> VectorPlaces:
        """The places of the vectors."""
        numbers, rows = (np.asarray(each, np.int64) for each in (self.thumbnail_parts, self.vector_rows))
        return VectorPlaces(self.parts, numbers, rows)


def placed(places: Sequence[ThumbnailPlace]) -> dict[str, Any]:
    """The columns and the fact of tables for the places of their thumbnails."""
    found = ThumbnailPlaces.of(places)
    return {
        "parts": tuple(found.parts),
        "thumbnail_parts": found.numbers,
        "thumbnail_begins": found.begins,
        "thumbnail_sizes": found.sizes,
    }
