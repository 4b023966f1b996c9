"""The places of thumbnails as columns of a table: the file, the first byte, and the number of bytes of each.

Knows no pictures and no stage.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from stages.files.thumbnail_files import ThumbnailPlace

FIELDS = {"thumbnail_part": pa.int32(), "thumbnail_begin": pa.int64(), "thumbnail_size": pa.uint32()}
"""The columns."""

FACT = "parts"
"""The table's fact with the names of the files, as JSON."""

_PART = re.compile(r"\w[\w.-]*", re.ASCII)
"""The name of a file: it becomes a part of a path, so a damaged one must not lead elsewhere."""

_Numbers = np.ndarray[Any, np.dtype[np.integer[Any]]]


@dataclass(frozen=True)
class ThumbnailPlaces(Sequence[ThumbnailPlace]):
    """The places of the thumbnails of n pictures, by row. parts: the names of their files. numbers: of each its file in
    `parts`; begins, sizes: in bytes; integers (n,)."""

    parts: Sequence[str]
    numbers: _Numbers
    begins: _Numbers
    sizes: _Numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        return ThumbnailPlace(self.parts[self.numbers[row]], int(self.begins[row]), int(self.sizes[row]))


def parts_of(places: Sequence[ThumbnailPlace]) -> list[str]:
    """The names of the files of these thumbnails, sorted."""
    return sorted({place.part for place in places})


def stored(places: Sequence[ThumbnailPlace]) -> tuple[dict[str, list[int]], dict[str, str]]:
    """The columns of these places, and the fact that belongs to them. Equal places give equal ones."""
    parts = parts_of(places)
    numbers = {part: number for number, part in enumerate(parts)}
    values = (
        [numbers[place.part] for place in places],
        [place.begin for place in places],
        [place.size for place in places],
    )
    return dict(zip(FIELDS, values, strict=True)), {FACT: json.dumps(parts)}


def parsed(table: pa.Table, parts: str) -> ThumbnailPlaces:
    """The places in a table. parts: its fact. Raises ValueError for columns that `stored` did not give."""
    names = json.loads(parts)
    if not isinstance(names, list) or not all(isinstance(name, str) and _PART.fullmatch(name) for name in names):
        raise ValueError("its names of parts are not valid")
    if any(table[name].null_count for name in FIELDS):
        raise ValueError("it lacks places of thumbnails")
    numbers, begins, sizes = (table[name].to_numpy() for name in FIELDS)
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < len(names) and begins.min() >= 0):
        raise ValueError("its places of thumbnails are not valid")
    return ThumbnailPlaces(names, numbers, begins, sizes)
