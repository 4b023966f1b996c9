"""The table of a segment of the index: its pictures, and the places of their vectors and thumbnails in files of the
buckets.

A picture's vector and its thumbnail lie in files of the same bucket. A search needs the thumbnails of few pictures, and
they are as large as the vectors: so they lie apart, and are read one by one. Knows no search and no stage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from stages.files.tables import thumbnail_places
from stages.files.tables.image_table import ImageTable, VectorOrigin
from stages.files.tables.parquet import SOURCES, SourceColumn, read_table, reader, write_table
from stages.files.tables.thumbnail_places import ThumbnailPlaces
from stages.files.thumbnail_files import ThumbnailPlace
from stages.files.vector_files import VectorPlaces
from stages.record.sources import Source

TABLE = "images.parquet"

_VECTOR_ROW = "vector_row"
_SCHEMA = pa.schema(
    [("id", pa.string()), ("sources", SOURCES), *thumbnail_places.FIELDS.items(), (_VECTOR_ROW, pa.uint32())]
)
_FACTS = ("model", "image_size", "fit", "dimension", "backbone")


@dataclass(frozen=True)
class IndexTable(VectorOrigin):
    """The n distinct pictures of a segment, sorted by id: the rows of its vectors."""

    ids: Sequence[str]  # n × 64 hex digits, strictly ascending
    sources: Sequence[Sequence[Source]]  # n × at least one
    vectors: VectorPlaces  # n
    thumbnails: ThumbnailPlaces  # n
    model: str  # identity hash of the backbone that the vectors came from
    image_size: int  # side of the normalised pictures in pixels
    fit: str  # how they fill their squares, one of stages.record.framing.FITS
    dimension: int  # length of one vector
    backbone: str = ""  # its name and size, for people

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.sources) == len(self.vectors) == len(self.thumbnails):
            raise ValueError("columns of a table of pictures differ in length")
        if any(a >= b for a, b in pairwise(self.ids)):
            raise ValueError("ids of a table of pictures must be distinct and sorted")

    def __len__(self) -> int:
        return len(self.ids)


def write_indexed(
    images: ImageTable, thumbnails: Sequence[ThumbnailPlace], vector_rows: Sequence[int], path: Path
) -> None:
    """Writes the table of a segment with the places of its thumbnails, and the rows of its vectors in the files of the
    same buckets. Equal values give equal bytes."""
    shown, parts = thumbnail_places.stored(thumbnails)
    columns = {"id": images.ids, "sources": SourceColumn.of(images.sources).stored, **shown, _VECTOR_ROW: vector_rows}
    write_table(columns, _SCHEMA, {name: str(getattr(images, name)) for name in _FACTS} | parts, path)


class IndexColumns(NamedTuple):
    """The columns of the same table: ids and sources as Arrow's arrays, and the places of vectors and thumbnails."""

    ids: Any
    sources: Any
    vectors: VectorPlaces
    thumbnails: ThumbnailPlaces


@reader
def read_indexed(file: Path | BinaryIO) -> IndexTable:
    """Reads the table that `write_indexed` wrote, from a path or a seekable binary file. Raises StageError for any
    other."""
    table, facts = read_table(file, _SCHEMA, *_FACTS, thumbnail_places.FACT)
    columns = _columns(table, facts)
    return IndexTable(
        ids=columns.ids.to_pylist(),
        sources=SourceColumn(columns.sources),
        vectors=columns.vectors,
        thumbnails=columns.thumbnails,
        model=facts["model"],
        image_size=int(facts["image_size"]),
        fit=facts["fit"],
        dimension=int(facts["dimension"]),
        backbone=facts["backbone"],
    )


@reader
def read_columns(file: Path | BinaryIO) -> IndexColumns:
    """Reads the same table without making Python's objects of it. Raises StageError as `read_indexed` does."""
    return _columns(*read_table(file, _SCHEMA, thumbnail_places.FACT))


def _columns(table: pa.Table, facts: Mapping[str, str]) -> IndexColumns:
    shown, rows = thumbnail_places.parsed(table, facts[thumbnail_places.FACT]), table[_VECTOR_ROW]
    if rows.null_count:
        raise ValueError("it lacks rows of vectors")
    vectors = VectorPlaces(shown.parts, shown.numbers.astype(np.int64), rows.to_numpy().astype(np.int64))
    return IndexColumns(table["id"].combine_chunks(), table["sources"].combine_chunks(), vectors, shown)
