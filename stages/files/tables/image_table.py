"""Tables of pictures: the rows of a vectors file, with ids and sources. Their thumbnails lie in a file apart, of which
the table has the sizes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import pyarrow as pa

from stages.datum.contract import StageError
from stages.files.tables.columns import SOURCES, Column, Numbers, SourceColumn, joined, taken
from stages.files.tables.parquet import ParquetTarget, damage_refused, read_columns
from stages.files.tables.table import Table
from stages.record import origin
from stages.record.origin import Origin
from stages.record.sources import Source, chosen, unite


@dataclass(frozen=True, kw_only=True, eq=False)
class PictureTable(Table):
    """n distinct pictures, sorted by id. A column that is added here needs no other mention on its way from a pack to
    the index."""

    ids: Annotated[Sequence[str], Column("id", pa.string(), ordered=True, lazy=True)]  # n × 64 hex digits
    sources: Annotated[Sequence[Sequence[Source]], Column("sources", SOURCES)]  # n × at least one
    # Of the normalised pixels, see stages.decode.picture_traits.
    brightness: Annotated[Numbers, Column("brightness", pa.float64())]
    contrast: Annotated[Numbers, Column("contrast", pa.float64())]
    sharpness: Annotated[Numbers, Column("sharpness", pa.float64())]
    colours: Annotated[Sequence[str], Column("colour", pa.string(), lazy=True)]
    origin: Origin  # of their vectors


def read_sources(file: ParquetTarget) -> SourceColumn:
    """The sources in a file of any table of pictures, and nothing else of it. Raises StageError for other files."""
    with damage_refused(file):
        return SourceColumn(read_columns(file, ["sources"])["sources"].combine_chunks())


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageTable(PictureTable):
    """The rows of a vectors file (n, dimension)."""

    STATED = origin.ALL

    # In bytes, of JPEG files: each of the picture's source with the smallest hash.
    thumbnail_sizes: Annotated[Numbers, Column("thumbnail_size", pa.uint32())]
    # Perceptual hashes of 64 bits.
    hashes: Annotated[Numbers, Column("perceptual_hash", pa.uint64())]


def merge_images(parts: Sequence[ImageTable]) -> tuple[ImageTable, list[tuple[int, int]]]:
    """One table of several, and for each of its pictures the number of the table, and there the row, whose thumbnail it
    has. A picture in several tables has the sources of all, and the thumbnail of the smallest (see
    stages.record.sources.chosen), of equal ones that of the first table. Vectors of several kinds of devices, which
    differ in their last digits, may be mixed.

    Raises StageError if they come from different models, backends, image sizes or fits, ValueError for no parts.
    """
    if not parts:
        raise ValueError("nothing to merge")
    first = parts[0].origin
    for part in parts:
        if mismatch := first.mismatch(part.origin, "one part of the pictures", "another"):
            raise StageError(
                f"{mismatch} Wait until preprocess and features have recomputed all pictures, or start features again "
                "with: lookalike deploy --reprocess features"
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
    shown = [places[id] for id in sorted(places)]
    merged = ImageTable.picked(parts, shown, origin=first.with_devices(part.origin for part in parts))
    if united:
        rows = {id: len(merged) + row for row, id in enumerate(united)}
        columns = joined([merged.sources, SourceColumn.of(united.values())])
        merged = replace(merged, sources=taken(columns, [rows.get(id, row) for row, id in enumerate(merged.ids)]))
    return merged, shown
