"""The ways to make a picture square. Knows no model and no set."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from PIL import Image

from stages.record.framing import CROP, PAD, Framing, PictureSquare, Pixels

_GREY = 127  # the backbones' zero


def normalised(picture: Image.Image, side: int, fit: str = PAD) -> PictureSquare:
    """As lookalike does it."""
    framing = Framing(side, fit)
    return framing.frame(_resized(picture.crop(framing.kept(picture.size)), framing.scaled(picture.size)))


def _ours(picture: Image.Image, side: int, fit: str) -> Pixels:
    return normalised(picture, side, fit).pixels


def _stretched(picture: Image.Image, side: int) -> Pixels:
    return _resized(picture, (side, side))


def _padded(picture: Image.Image, side: int, **how: Any) -> Pixels:
    """At lookalike's scale and place, but filled in another way: numpy.pad's."""
    small = _resized(picture, Framing(side, PAD).scaled(picture.size))
    height, width, _ = small.shape
    down, across = side - height, side - width
    return np.pad(small, ((down // 2, down - down // 2), (across // 2, across - across // 2), (0, 0)), **how)


def _resized(picture: Image.Image, size: tuple[int, int]) -> Pixels:
    if picture.size != size:
        picture = picture.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    return np.asarray(picture)


FRAMINGS: dict[str, Callable[[Image.Image, int], Pixels]] = {
    "crop": partial(_ours, fit=CROP),
    "stretch": _stretched,
    "pad, edges": partial(_padded, mode="edge"),
    "pad, mirrored": partial(_padded, mode="symmetric"),
    "pad, grey": partial(_padded, mode="constant", constant_values=_GREY),
    "pad, border's colour": partial(_ours, fit=PAD),
}
"""From an RGB picture of any size and a side in pixels to uint8 (side, side, 3)."""
