"""Random changes of pictures for training: mirrored, moved, scaled, turned, brighter or darker, of other contrast.

Every choice is a function of the seed, the epoch and the picture, so training that goes on after an interruption sees
what it would have seen. Knows no files, no labels and no network.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from stages.classify.training.training_parameters import AugmentationParameters
from stages.record.framing import Pixels, border_colour

_DRAWS = 7  # numbers for each picture in each epoch


class PictureChange(NamedTuple):
    """What is done to one picture. All of these leave it as it is: False, 0, 0, 1, 0, 1, 1.

    right, down: shares of the side. zoom: the factor by which it grows. turn: share of a full turn, clockwise.
    brightness, contrast: factors.
    """

    mirrored: bool
    right: float
    down: float
    zoom: float
    turn: float
    brightness: float
    contrast: float

    @property
    def moves(self) -> bool:
        """Whether any pixel changes its place, other than by the mirror."""
        return (self.right, self.down, self.zoom, self.turn) != (0, 0, 1, 0)


def change(settings: AugmentationParameters, seed: int, epoch: int, id: str) -> PictureChange:
    """The change of a picture in an epoch. Every number is drawn evenly from its range: the settings' share in either
    direction, and one in two pictures is mirrored."""
    drawn = hashlib.shake_256(f"augmentation:{seed}:{epoch}:{id}".encode()).digest(8 * _DRAWS)
    shares = [int.from_bytes(drawn[at : at + 8], "big") / (1 << 64) for at in range(0, len(drawn), 8)]
    right, down, zoom, turn, brightness, contrast = (
        (2 * share - 1) * most
        for share, most in zip(
            shares[1:],
            (settings.shift, settings.shift, settings.zoom, settings.rotation, settings.brightness, settings.contrast),
            strict=True,
        )
    )
    mirrored = settings.flip and shares[0] < 0.5
    return PictureChange(mirrored, right, down, 1 + zoom, turn, 1 + brightness, 1 + contrast)


def augmented(pictures: Pixels, settings: AugmentationParameters, seed: int, epoch: int, ids: Sequence[str]) -> Pixels:
    """The pictures, uint8 (n, S, S, 3) RGB, as the training of an epoch sees them, in a new array. ids: of all n."""
    made = np.empty_like(pictures)
    for row, id in enumerate(ids):
        made[row] = changed(pictures[row], change(settings, seed, epoch, id))
    return made


def changed(picture: Pixels, change: PictureChange) -> Pixels:
    """One picture, uint8 (S, S, 3) RGB, changed. The room that a movement leaves is filled with the colour of the
    picture's border, as the room beside a framed picture is."""
    if change.mirrored:
        picture = picture[:, ::-1]
    if change.moves:
        picture = _moved(picture, change)
    if (change.brightness, change.contrast) != (1, 1):
        picture = _toned(picture, change)
    return picture


def _moved(picture: Pixels, change: PictureChange) -> Pixels:
    """The picture scaled and turned about its middle, then moved: by bilinear samples."""
    side = len(picture)
    middle, angle = side / 2, 2 * math.pi * change.turn
    # Pillow takes the way back, from a place in the result to that in the picture.
    across, along = math.cos(angle) / change.zoom, math.sin(angle) / change.zoom
    x, y = middle + change.right * side, middle + change.down * side
    back = (across, along, middle - across * x - along * y, -along, across, middle + along * x - across * y)
    fill = tuple(int(value) for value in border_colour(picture))
    image = Image.fromarray(np.ascontiguousarray(picture))
    moved = image.transform(
        (side, side), Image.Transform.AFFINE, back, Image.Resampling.BILINEAR, fill=True, fillcolor=fill
    )
    return np.asarray(moved)


def _toned(picture: Pixels, change: PictureChange) -> Pixels:
    """The picture with each value multiplied by the brightness, and its distance from the mean by the contrast."""
    values = np.arange(256) * change.brightness
    mean = picture.mean() * change.brightness
    table: npt.NDArray[np.uint8] = np.clip(np.rint(mean + (values - mean) * change.contrast), 0, 255).astype(np.uint8)
    return table[picture]
