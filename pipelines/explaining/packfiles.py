"""Packs read piece by piece on the server: the names of their pictures, and one picture, without all the others.

A pack holds megabytes of pixels; the lines behind them are some hundred bytes for each picture. See stages.packs.
"""

import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from pipelines.client.lineage import Found, Lineage
from stages.framing import Framed, unpadded
from stages.packheaders import shape
from stages.packtails import HEADER
from stages.sources import Source

_SIDE = 160
"""The longer edge, in pixels, of a picture in a trace; twice that of its place on the page."""


@dataclass(frozen=True, slots=True)
class Row:
    """A picture of a pack: its id, its sources, its size without padding in pixels, and the place of its pixels."""

    id: str
    sources: tuple[Source, ...]
    size: tuple[int, int]
    side: int
    offset: int


class PackFile:
    """A pack of preprocess at a commit. Raises ValueError or KeyError for a file that is not one of this version."""

    def __init__(self, lineage: Lineage, file: Found) -> None:
        self.file = file
        self._lineage = lineage
        count, side, _, _ = shape(lineage.read(file, most=HEADER))
        picture = side * side * 3
        _, *lines = lineage.read(file, HEADER + count * picture).splitlines()
        self.rows = [_row(json.loads(line), side, HEADER + at * picture) for at, line in enumerate(lines)]

    def row(self, id_: str) -> Row | None:
        """The picture with this id."""
        return next((each for each in self.rows if each.id == id_), None)

    def thumbnail(self, row: Row) -> bytes:
        """A picture as a small JPEG file, without its padding."""
        pixels = np.frombuffer(self._lineage.read(self.file, row.offset, row.side**2 * 3), np.uint8)
        framed = Framed(pixels.reshape(row.side, row.side, 3), row.size)
        picture = Image.fromarray(np.ascontiguousarray(unpadded(framed)))
        picture.thumbnail((_SIDE, _SIDE), Image.Resampling.LANCZOS)
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=80)
        return file.getvalue()


def _row(line: dict[str, Any], side: int, offset: int) -> Row:
    width, height = line["size"]
    known = Source._fields
    sources = tuple(Source(**{key: each[key] for key in known if key in each}) for each in line["sources"])
    return Row(line["id"], sources, (width, height), side, offset)
