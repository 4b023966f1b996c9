"""Packs of given pixels, and the pixels in packs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stages.files import coded_pictures
from stages.files.packs import Pack, PackPicture, write_pack
from stages.record.framing import Framing, PictureSquare, Pixels, unpadded


def write_pixels(path: Path, framing: Framing, pictures: Sequence[PackPicture], squares: Sequence[Pixels]) -> None:
    """Writes a pack of squares, uint8 (side, side, 3) each, as preprocess would."""
    each = zip(pictures, squares, strict=True)
    coded = [
        coded_pictures.encode(np.ascontiguousarray(unpadded(PictureSquare(square, picture.size))))
        for picture, square in each
    ]
    sized = [picture._replace(coded_size=len(content)) for picture, content in zip(pictures, coded, strict=True)]
    write_pack(path, framing, sized, coded)


def pixels_of(pack: Pack) -> Pixels:
    """The squares of a pack, uint8 (n, side, side, 3), as features sees them."""
    side = pack.framing.side
    found = np.empty((len(pack.pictures), side, side, 3), np.uint8)
    for row, (_, framed) in enumerate(pack.framed()):
        found[row] = framed.pixels
    return found


def as_compared(pixels: Pixels, inside: tuple[int, int] | None = None) -> Pixels:
    """A square as it comes back from a pack. inside: the (width, height) of its picture, if it is smaller."""
    return coded_pictures.compared(PictureSquare(pixels, inside or (len(pixels), len(pixels))))
