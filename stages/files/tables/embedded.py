"""The table of a part that features computed: its pictures, and the places of their thumbnails in the files of
preprocess, which features never reads.

Knows no stage.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from stages.files.tables import images, places
from stages.files.tables.images import Images
from stages.files.tables.parquet import read_table, reader, write_table
from stages.files.tables.places import Places
from stages.files.thumbnailfiles import Place

_SCHEMA = pa.schema([*(images.FIELDS | places.FIELDS).items()])


def write_embedded(pictures: Images, thumbnails: Sequence[Place], path: Path) -> None:
    """Writes the table of a part with the places of its thumbnails. Equal values give equal bytes."""
    shown, parts = places.stored(thumbnails)
    write_table({**images.stored(pictures), **shown}, _SCHEMA, images.stored_facts(pictures) | parts, path)


@reader
def read_embedded(file: Path | BinaryIO) -> tuple[Images, Places]:
    """Reads what `write_embedded` wrote, from a path or a seekable binary file. Raises StageError for any other."""
    table, facts = read_table(file, _SCHEMA, *images.FACTS, places.FACT)
    return images.parsed(table, facts), places.parsed(table, facts[places.FACT])
