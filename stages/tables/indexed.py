"""The table of a segment of the index: its pictures, and the places of their thumbnails in files of the buckets.

A search needs the thumbnails of few pictures, and they are as large as the vectors: so they lie apart, and are read one
by one. Knows no search and no stage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from stages.sources import Source
from stages.tables import places
from stages.tables.images import Images, OfVectors
from stages.tables.parquet import SOURCES, read_table, reader, stored_sources, true_sources, write_table
from stages.tables.places import Places
from stages.thumbnailfiles import Place

TABLE = "images.parquet"

_SCHEMA = pa.schema([("id", pa.string()), ("sources", SOURCES), *places.FIELDS.items()])
_FACTS = ("model", "image_size", "fit", "dimension", "backbone")


@dataclass(frozen=True)
class Indexed(OfVectors):
    """The n distinct pictures of a segment, sorted by id: the rows of its vectors."""

    ids: Sequence[str]  # n × 64 hex digits, strictly ascending
    sources: Sequence[Sequence[Source]]  # n × at least one
    thumbnails: Places  # n
    model: str  # identity hash of the backbone that the vectors came from
    image_size: int  # side of the normalised pictures in pixels
    fit: str  # how they fill their squares, one of stages.framing.FITS
    dimension: int  # length of one vector
    backbone: str = ""  # its name and size, for people

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.sources) == len(self.thumbnails):
            raise ValueError("columns of a table of pictures differ in length")
        if any(a >= b for a, b in pairwise(self.ids)):
            raise ValueError("ids of a table of pictures must be distinct and sorted")

    def __len__(self) -> int:
        return len(self.ids)


def write_indexed(images: Images, thumbnails: Sequence[Place], path: Path) -> None:
    """Writes the table of a segment with the places of its thumbnails. Equal values give equal bytes."""
    shown, parts = places.stored(thumbnails)
    columns = {"id": images.ids, "sources": stored_sources(images.sources), **shown}
    write_table(columns, _SCHEMA, {name: str(getattr(images, name)) for name in _FACTS} | parts, path)


@reader
def read_indexed(file: Path | BinaryIO) -> Indexed:
    """Reads the table that `write_indexed` wrote, from a path or a seekable binary file. Raises StageError for any
    other."""
    table, facts = read_table(file, _SCHEMA, *_FACTS, places.FACT)
    return Indexed(
        ids=table["id"].to_pylist(),
        sources=true_sources(table["sources"].to_pylist()),
        thumbnails=places.parsed(table, facts[places.FACT]),
        model=facts["model"],
        image_size=int(facts["image_size"]),
        fit=facts["fit"],
        dimension=int(facts["dimension"]),
        backbone=facts["backbone"],
    )


@reader
def read_columns(file: Path | BinaryIO) -> tuple[Any, Any, Places]:
    """The ids, the sources and the places of the thumbnails of the same table, the first two as Arrow's arrays. Raises
    StageError as `read_indexed` does."""
    table, facts = read_table(file, _SCHEMA, places.FACT)
    return table["id"].combine_chunks(), table["sources"].combine_chunks(), places.parsed(table, facts[places.FACT])
