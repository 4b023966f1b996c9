"""Packs read piece by piece on the server: the names of their pictures, and one picture, without all the others.

A pack holds megabytes of pixels; the lines behind them are some hundred bytes for each picture. See stages.files.packs.
"""

import io

import numpy as np
from PIL import Image

from pipelines.client.lineage import FileOrigin, Lineage
from stages.files import pack_tails
from stages.files.pack_headers import shape
from stages.files.pack_tails import PackRow
from stages.record.framing import PictureSquare, unpadded

_SIDE = 160
"""The longer edge, in pixels, of a picture in a trace; twice that of its place on the page."""


class PackFile:
    """A pack of preprocess at a commit. Raises ValueError for a file that is not one of this version."""

    def __init__(self, lineage: Lineage, file: FileOrigin) -> None:
        self.file = file
        self._lineage = lineage
        count, self._side, _, _ = shape(lineage.read(file, most=pack_tails.HEADER))
        self._rows = pack_tails.rows(lineage.read(file, pack_tails.offset(count, self._side)))

    def row(self, id_: str) -> PackRow | None:
        """The picture with this id."""
        return next((each for each in self._rows if each.id == id_), None)

    def thumbnail(self, row: PackRow) -> bytes:
        """A picture as a small JPEG file, without its padding."""
        place = pack_tails.offset(self._rows.index(row), self._side)
        pixels = np.frombuffer(self._lineage.read(self.file, place, self._side**2 * 3), np.uint8)
        framed = PictureSquare(pixels.reshape(self._side, self._side, 3), row.size)
        picture = Image.fromarray(np.ascontiguousarray(unpadded(framed)))
        picture.thumbnail((_SIDE, _SIDE), Image.Resampling.LANCZOS)
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=80)
        return file.getvalue()
