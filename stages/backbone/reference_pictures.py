"""The pictures that every model is tried on: parts of real photographs, and changed copies of some.

Always the same, for one version of scikit-image and Pillow, whatever a library holds. Squares, so that they fill the
square that a backbone takes, however a library's pictures are framed. Knows no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO

import numpy as np
from PIL import Image, ImageEnhance

from stages.backbone.photographs import PHOTOGRAPHS, holds_enough, open_photograph
from stages.record.framing import Pixels

_GRIDS = (2, 3)
"""A photograph's shorter edge is divided into so many squares, and its longer one into one more at most: scenes at two
distances."""

_EVERY = 3  # of the pictures, one of so many has a copy


@dataclass(frozen=True)
class ReferencePictures:
    """pictures: uint8 RGB (n, S, S, 3). labels: the photograph of each. copies: uint8 RGB (m, S, S, 3), each of the
    picture in the row of `pictures` that originals has."""

    pictures: Pixels
    labels: Sequence[str]
    copies: Pixels
    originals: Sequence[int]


def reference_pictures(side: int) -> ReferencePictures:
    """The pictures with squares of `side` pixels. Raises StageError if scikit-image lacks a photograph."""
    parts = [(label, part) for label in PHOTOGRAPHS for part in _parts(open_photograph(label).convert("RGB"))]
    originals = range(0, len(parts), _EVERY)
    copies = [_CHANGES[number % len(_CHANGES)](parts[row][1]) for number, row in enumerate(originals)]
    return ReferencePictures(
        _pixels([part for _, part in parts], side), [label for label, _ in parts], _pixels(copies, side), originals
    )


def _parts(photograph: Image.Image) -> Iterator[Image.Image]:
    for grid in _GRIDS:
        side = min(photograph.size) // grid
        for top in range(0, grid * side, side):
            for left in range(0, min(photograph.width // side, grid + 1) * side, side):
                part = photograph.crop((left, top, left + side, top + side))
                if holds_enough(part):
                    yield part


def _pixels(pictures: Sequence[Image.Image], side: int) -> Pixels:
    return np.stack([np.asarray(each.resize((side, side), Image.Resampling.LANCZOS)) for each in pictures])


def _compressed(picture: Image.Image) -> Image.Image:
    file = BytesIO()
    picture.save(file, "JPEG", quality=40)
    return Image.open(file).convert("RGB")


def _scaled(picture: Image.Image) -> Image.Image:
    return picture.resize((picture.width // 2, picture.height // 2), Image.Resampling.LANCZOS)


def _cropped(picture: Image.Image) -> Image.Image:
    edge = picture.width // 20
    return picture.crop((edge, edge, picture.width - edge, picture.height - edge))


def _enhanced(picture: Image.Image, enhancement: type[ImageEnhance._Enhance], factor: float) -> Image.Image:
    return enhancement(picture).enhance(factor)  # type: ignore[call-arg]


_CHANGES: Sequence[Callable[[Image.Image], Image.Image]] = (
    _compressed,
    _scaled,
    _cropped,
    partial(_enhanced, enhancement=ImageEnhance.Brightness, factor=1.25),
    partial(_enhanced, enhancement=ImageEnhance.Contrast, factor=0.75),
)
