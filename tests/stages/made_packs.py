"""Packs of given pixels, and the pixels in packs."""

import json
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


def former_pack(pictures: Sequence[PackPicture], squares: Pixels) -> bytes:
    """A pack as preprocess wrote it before version 16: an array of NumPy's, and the lines behind it."""
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {squares.shape}, }}".ljust(117) + "\n"
    facts = ({"id": p.id, "size": p.size, "sources": [s._asdict() for s in p.sources]} for p in pictures)
    lines = "".join(json.dumps(each) + "\n" for each in ({"fit": "pad"}, *facts))
    start = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode()
    return start + squares.tobytes() + lines.encode()


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
