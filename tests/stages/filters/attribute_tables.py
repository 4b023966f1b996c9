"""Tables of attributes for the tests of filters: made pictures with files, and what people say of these."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from stages.filters.attribute_table import AttributeSegment, AttributeTable
from stages.record.sources import Source
from tests.stages.image_tables import image_table

Annotations = Mapping[str, Mapping[str, Any]]
"""What people say: by path, then by column."""


def located(source: Source, latitude: float | None, longitude: float | None) -> Source:
    """The source with a place in degrees, if sources have one. Otherwise people may say it."""
    place: dict[str, Any] = {"latitude": latitude, "longitude": longitude}
    return source._replace(**{name: each for name, each in place.items() if name in Source._fields})


def attribute_table(
    pictures: Sequence[Sequence[Source]],
    annotations: Annotations | None = None,
    schema: pa.Schema | None = None,
    segments: int = 1,
) -> AttributeTable:
    """The attributes of pictures with these sources, dealt to so many segments. schema: of people's columns."""
    size = -(-len(pictures) // segments)
    return AttributeTable(
        [_segment(pictures[first : first + size], annotations, schema) for first in range(0, len(pictures), size)]
    )


def _segment(
    pictures: Sequence[Sequence[Source]], annotations: Annotations | None, schema: pa.Schema | None
) -> AttributeSegment:
    table = image_table([f"{number:064x}" for number in range(len(pictures))], 4, pictures)
    if annotations is None:
        return AttributeSegment(table)
    own = {source.path for sources in pictures for source in sources}
    said = [{"path": path, **annotations[path]} for path in sorted(own & annotations.keys())]
    columns = pa.schema([("path", pa.string()), *(schema or pa.schema([]))])
    return AttributeSegment(table, pa.Table.from_pylist(said, columns) if said else None)
