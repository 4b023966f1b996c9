"""The table of a part that features computed: its pictures, and the places of their thumbnails in the files of
preprocess, which features never reads.

Knows no stage.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from stages.files.tables import image_table, thumbnail_places
from stages.files.tables.image_table import ImageTable
from stages.files.tables.parquet import read_table, reader, write_table
from stages.files.tables.thumbnail_places import ThumbnailPlaces
from stages.files.thumbnail_files import ThumbnailPlace

_SCHEMA = pa.schema([*(image_table.FIELDS | thumbnail_places.FIELDS).items()])


def write_embedded(pictures: ImageTable, thumbnails: Sequence[ThumbnailPlace], path: Path) -> None:
    """Writes the table of a part with the places of its thumbnails. Equal values give equal bytes."""
    shown, parts = thumbnail_places.stored(thumbnails)
    write_table({**image_table.stored(pictures), **shown}, _SCHEMA, image_table.stored_facts(pictures) | parts, path)


@reader
def read_embedded(file: Path | BinaryIO) -> tuple[ImageTable, ThumbnailPlaces]:
    """Reads what `write_embedded` wrote, from a path or a seekable binary file. Raises StageError for any other."""
    table, facts = read_table(file, _SCHEMA, *image_table.FACTS, thumbnail_places.FACT)
    return image_table.parsed(table, facts), thumbnail_places.parsed(table, facts[thumbnail_places.FACT])
