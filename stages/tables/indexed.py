"""The table of a segment of the index: its pictures, and the places of their thumbnails in files of the parts.

A search needs the thumbnails of few pictures, and they are as large as the vectors: so they lie apart, and are read one
by one. Knows no search and no stage.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from stages.sources import Source
from stages.tables.images import Images, OfVectors
from stages.tables.parquet import SOURCES, read_table, reader, stored_sources, true_sources, write_table
from stages.thumbnailfiles import Place

TABLE = "images.parquet"

_PLACES = {"thumbnail_part": pa.int32(), "thumbnail_begin": pa.int64(), "thumbnail_size": pa.uint32()}
_SCHEMA = pa.schema([("id", pa.string()), ("sources", SOURCES), *_PLACES.items()])
_FACTS = ("model", "image_size", "fit", "dimension", "backbone")
_PART = re.compile(r"\w[\w.-]*", re.ASCII)
"""The name of a part: it becomes a part of a path, so a damaged one must not lead elsewhere."""

Numbers = np.ndarray[Any, np.dtype[np.integer[Any]]]


@dataclass(frozen=True)
class Places(Sequence[Place]):
    """The places of the thumbnails of n pictures, by row. parts: the names of their files. numbers: of each its file in
    `parts`; begins, sizes: in bytes; integers (n,)."""

    parts: Sequence[str]
    numbers: Numbers
    begins: Numbers
    sizes: Numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        return Place(self.parts[self.numbers[row]], int(self.begins[row]), int(self.sizes[row]))


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


def parts_of(places: Sequence[Place]) -> list[str]:
    """The names of the files of these thumbnails, sorted."""
    return sorted({place.part for place in places})


def write_indexed(images: Images, thumbnails: Sequence[Place], path: Path) -> None:
    """Writes the table of a segment with the places of its thumbnails. Equal values give equal bytes."""
    parts = parts_of(thumbnails)
    numbers = {part: number for number, part in enumerate(parts)}
    columns = {
        "id": images.ids,
        "sources": stored_sources(images.sources),
        "thumbnail_part": [numbers[place.part] for place in thumbnails],
        "thumbnail_begin": [place.begin for place in thumbnails],
        "thumbnail_size": [place.size for place in thumbnails],
    }
    facts = {name: str(getattr(images, name)) for name in _FACTS}
    write_table(columns, _SCHEMA, facts | {"parts": json.dumps(parts)}, path)


@reader
def read_indexed(file: Path | BinaryIO) -> Indexed:
    """Reads the table that `write_indexed` wrote, from a path or a seekable binary file. Raises StageError for any
    other."""
    table, facts = read_table(file, _SCHEMA, *_FACTS, "parts")
    return Indexed(
        ids=table["id"].to_pylist(),
        sources=true_sources(table["sources"].to_pylist()),
        thumbnails=_places(table, facts["parts"]),
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
    table, facts = read_table(file, _SCHEMA, "parts")
    return table["id"].combine_chunks(), table["sources"].combine_chunks(), _places(table, facts["parts"])


def _places(table: pa.Table, parts: str) -> Places:
    names = json.loads(parts)
    if not isinstance(names, list) or not all(isinstance(name, str) and _PART.fullmatch(name) for name in names):
        raise ValueError("its names of parts are not valid")
    if any(table[name].null_count for name in _PLACES):
        raise ValueError("it lacks places of thumbnails")
    numbers, begins, sizes = (table[name].to_numpy() for name in _PLACES)
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < len(names) and begins.min() >= 0):
        raise ValueError("its places of thumbnails are not valid")
    return Places(names, numbers, begins, sizes)
