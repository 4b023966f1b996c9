"""Tables of pictures: the rows of a vectors file, with ids and sources. Their thumbnails lie in a file apart, of which
the table has the sizes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from stages.datum.contract import StageError
from stages.files.tables.parquet import SOURCES, SourceColumn, read_table, reader, write_table
from stages.record.sources import Source, chosen, unite

FIELDS = {"id": pa.string(), "sources": SOURCES, "thumbnail_size": pa.uint32(), "perceptual_hash": pa.uint64()}
"""The columns."""

FACTS = ("model", "image_size", "fit", "dimension", "backbone", "devices")

_SCHEMA = pa.schema([*FIELDS.items()])


class VectorOrigin:
    """The origin of vectors, for values that hold these facts."""

    model: str
    image_size: int
    fit: str
    dimension: int
    backbone: str

    @property
    def origin(self) -> tuple[str, int, str, int]:
        """Everything that vectors must have in common to be compared."""
        return self.model, self.image_size, self.fit, self.dimension

    @property
    def described(self) -> str:
        """The origin, for people."""
        named = f"{self.backbone} {self.model}".strip()
        return f"{named} (IMAGE_SIZE={self.image_size}, FIT={self.fit}, {self.dimension} dimensions)"


@dataclass(frozen=True)
class ImageTable(VectorOrigin):
    """n distinct pictures, sorted by id: the rows of a vectors file (n, dimension)."""

    ids: Sequence[str]  # n × 64 hex digits, strictly ascending
    sources: Sequence[Sequence[Source]]  # n × at least one
    thumbnail_sizes: Sequence[int]  # n, in bytes, of JPEG files: each of the picture's source with the smallest hash
    hashes: Sequence[int]  # n perceptual hashes of 64 bits
    model: str  # identity hash of the backbone that the vectors came from
    image_size: int  # side of the normalised pictures in pixels
    fit: str  # how they fill their squares, one of stages.record.framing.FITS
    dimension: int  # length of one vector
    backbone: str = ""  # its name and size, for people; equal models may have several
    devices: tuple[str, ...] = ()  # the kinds that computed the vectors (stages.backbone.devices.kind), sorted

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.sources) == len(self.thumbnail_sizes) == len(self.hashes):
            raise ValueError("columns of a table of pictures differ in length")
        if any(a >= b for a, b in pairwise(self.ids)):
            raise ValueError("ids of a table of pictures must be distinct and sorted")

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, rows: slice) -> "ImageTable":
        """Some of the pictures."""
        return replace(
            self,
            ids=self.ids[rows],
            sources=self.sources[rows],
            thumbnail_sizes=self.thumbnail_sizes[rows],
            hashes=self.hashes[rows],
        )


def write_images(images: ImageTable, path: Path) -> None:
    """Writes a table of pictures; equal values give equal bytes."""
    write_table(stored(images), _SCHEMA, stored_facts(images), path)


def stored_facts(images: ImageTable) -> dict[str, str]:
    """The facts of a table of pictures, as a file holds them."""
    return {
        "model": images.model,
        "image_size": str(images.image_size),
        "fit": images.fit,
        "dimension": str(images.dimension),
        "backbone": images.backbone,
        "devices": json.dumps(images.devices),
    }


def stored(images: ImageTable) -> dict[str, Sequence[Any]]:
    """The columns of a table of pictures, as a file holds them."""
    return {
        "id": images.ids,
        "sources": SourceColumn.of(images.sources).stored,
        "thumbnail_size": images.thumbnail_sizes,
        "perceptual_hash": images.hashes,
    }


@reader
def read_images(file: Path | BinaryIO) -> ImageTable:
    """Reads what write_images wrote, from a path or a seekable binary file.

    Raises StageError for any other file.
    """
    return parsed(*read_table(file, _SCHEMA, *FACTS))


def parsed(table: pa.Table, facts: Mapping[str, str]) -> ImageTable:
    """The pictures of a table with at least the columns and facts of `write_images`. Raises ValueError for others."""
    if table["thumbnail_size"].null_count:
        raise ValueError("it lacks sizes of thumbnails")
    return ImageTable(
        ids=table["id"].to_pylist(),
        sources=SourceColumn(table["sources"].combine_chunks()),
        thumbnail_sizes=table["thumbnail_size"].to_pylist(),
        hashes=table["perceptual_hash"].to_pylist(),
        model=facts["model"],
        image_size=int(facts["image_size"]),
        fit=facts["fit"],
        dimension=int(facts["dimension"]),
        backbone=facts["backbone"],
        devices=tuple(json.loads(facts["devices"])),
    )


def merge_images(parts: Sequence[ImageTable]) -> tuple[ImageTable, list[tuple[int, int]]]:
    """One table of several, and for each of its pictures the number of the table, and there the row, whose thumbnail it
    has. A picture in several tables has the sources of all, and the thumbnail of the smallest (see
    stages.record.sources.chosen), of equal ones that of the first table. Vectors of several kinds of devices, which
    differ in their last digits, may be mixed.

    Raises StageError if they come from different models, image sizes or fits, ValueError for no parts.
    """
    if not parts:
        raise ValueError("nothing to merge")
    first = parts[0]
    for part in parts:
        if part.origin != first.origin:
            raise StageError(
                f"vectors of two models or two kinds of pictures cannot be mixed: {first.described} and "
                f"{part.described}. Wait until preprocess and features have recomputed all pictures, or start features "
                "again with: lookalike deploy --reprocess features"
            )
    places: dict[str, tuple[int, int]] = {}
    repeated: dict[str, list[tuple[int, int]]] = {}
    for number, part in enumerate(parts):
        for row, id in enumerate(part.ids):
            if places.setdefault(id, (number, row)) != (number, row):
                repeated.setdefault(id, [places[id]]).append((number, row))
    united: dict[str, Sequence[Source]] = {}
    for id, of in repeated.items():
        sources = [parts[number].sources[row] for number, row in of]
        united[id], places[id] = unite(*sources), chosen(zip(sources, of, strict=True))
    ids = sorted(places)
    shown = [places[id] for id in ids]
    merged = ImageTable(
        ids=ids,
        sources=_merged_sources(parts, places, united, ids),
        thumbnail_sizes=[parts[number].thumbnail_sizes[row] for number, row in shown],
        hashes=[parts[number].hashes[row] for number, row in shown],
        model=first.model,
        image_size=first.image_size,
        fit=first.fit,
        dimension=first.dimension,
        backbone=first.backbone,
        devices=tuple(sorted({device for part in parts for device in part.devices})),
    )
    return merged, shown


def _merged_sources(
    parts: Sequence[ImageTable],
    places: Mapping[str, tuple[int, int]],
    united: Mapping[str, Sequence[Source]],
    ids: Sequence[str],
) -> SourceColumn:
    """The sources of these pictures: those that are united, and of all others those at their places. Python's objects
    are made of the former alone, which are few."""
    columns = [SourceColumn.of(sources) for sources in (*(part.sources for part in parts), united.values())]
    firsts = [0, *accumulate(map(len, columns))]
    rows = {id: firsts[number] + row for id, (number, row) in places.items()}
    rows |= {id: firsts[len(parts)] + row for row, id in enumerate(united)}
    return SourceColumn.taken(columns, [rows[id] for id in ids])
