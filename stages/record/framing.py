"""The square that pictures of any shape are brought into, and the place of each picture in it.

A backbone takes squares. `pad` keeps the whole picture and fills the rest of the square; `crop` keeps the picture's
middle square. Knows no decoding, no files and no ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]

PAD, CROP = FITS = ("pad", "crop")
"""The values of the parameter FIT; the first is the default."""


class PictureSquare(NamedTuple):
    """pixels: uint8 (side, side, 3) RGB. size: (width, height) of the picture, which lies in the middle of them."""

    pixels: Pixels
    size: tuple[int, int]


@dataclass(frozen=True)
class Framing:
    """The way from a picture to its square."""

    side: int  # of the square, in pixels
    fit: str  # one of FITS

    def kept(self, size: tuple[int, int]) -> tuple[int, int, int, int]:
        """The part that is kept of a picture of that (width, height): left, top, right, bottom."""
        width, height = size
        if self.fit == PAD:
            return 0, 0, width, height
        edge = min(size)
        left, top = (width - edge) // 2, (height - edge) // 2
        return left, top, left + edge, top + edge

    def scaled(self, size: tuple[int, int]) -> tuple[int, int]:
        """The (width, height) in the square of a picture of that (width, height): at least one pixel each."""
        if self.fit == CROP:
            return self.side, self.side
        longer = max(size)
        width, height = (max(1, (2 * edge * self.side + longer) // (2 * longer)) for edge in size)
        return width, height

    def frame(self, picture: Pixels) -> PictureSquare:
        """A scaled picture, uint8 (height, width, 3), in the middle of its square."""
        height, width, _ = picture.shape
        return PictureSquare(_filled(picture, self.side), (width, height))


def unpadded(framed: PictureSquare) -> Pixels:
    """The picture alone, uint8 (height, width, 3), without the rest of its square."""
    left, top = _corner(framed.size, len(framed.pixels))
    width, height = framed.size
    return framed.pixels[top : top + height, left : left + width]


def _filled(picture: Pixels, side: int) -> Pixels:
    """The picture in the middle of a square of its border's colour, the best filling according to docs/quality.md."""
    height, width, _ = picture.shape
    if width == height == side:
        return picture
    left, top = _corner((width, height), side)
    square = np.empty((side, side, 3), np.uint8)
    line = np.empty((side, 3), np.uint8)
    line[:] = border_colour(picture)
    for margin in (square[:top], square[top + height :], square[:, :left], square[:, left + width :]):
        margin[:] = line[: margin.shape[1]]  # by rows, in a third of the time
    square[top : top + height, left : left + width] = picture
    return square


def border_colour(picture: Pixels) -> NDArray[np.int64]:
    """The mean of a picture's outermost pixels, (3,), rounded."""
    height, width, _ = picture.shape
    first_and_last = picture[:: max(1, height - 1)].reshape(-1, 3)
    sides = picture[1:-1, :: max(1, width - 1)].reshape(-1, 3)
    border = np.concatenate([first_and_last, sides])
    mean: NDArray[np.int64] = (2 * border.sum(axis=0, dtype=np.int64) + len(border)) // (2 * len(border))
    return mean


def _corner(size: tuple[int, int], side: int) -> tuple[int, int]:
    """The left and top edges of a picture of that (width, height) in its square."""
    return (side - size[0]) // 2, (side - size[1]) // 2
