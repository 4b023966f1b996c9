"""A way to turn a picture into a vector, and the vectors of labelled sets by different ways. Knows no table."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from stages.backbone.backbone_spec import MODEL_FILE
from stages.backbone.backbones import load_backbone
from stages.backbone.efficientnet import POOLED
from stages.record.framing import Pixels
from stages.zoo import make_backbone
from studies.sets.framing import FRAMINGS
from studies.sets.labelled import Labelled
from studies.sets.pooled import POOLINGS, Pooled, unit


@dataclass(frozen=True, slots=True)
class Way:
    """From a picture to its vector. `unit`: scaled to length 1; `flip`: the mean with the mirrored picture's."""

    backbone: str = "efficientnet-lite0"
    framing: str = "pad, border's colour"
    size: int = 224
    pooling: str = "average"
    unit: bool = True
    flip: bool = False


class Vectors:
    """Computes vectors; what two ways share is computed once. Backbones are made in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[str, NDArray[np.float32]] = {}
        self.backbone = cache(self._backbone)

    def of(self, labelled: Labelled, way: Way) -> NDArray[np.float32]:
        """The vectors (n, d) of a set."""
        vectors = self._pooled(labelled, way, mirrored=False)
        if way.flip:
            vectors = vectors + self._pooled(labelled, way, mirrored=True)
        return unit(vectors) if way.unit else vectors

    def embed(self, images: Sequence[Image.Image], way: Way) -> None:
        """All the work on these pictures, nothing of it kept: for measurements of speed."""
        pixels = framed(images, way)
        model = self.backbone(way.backbone, way.size)
        unit(model(pixels))
        if way.flip:
            unit(model(mirror(pixels)))

    def _pooled(self, labelled: Labelled, way: Way, mirrored: bool) -> NDArray[np.float32]:
        pixels = framed(labelled.images, way)
        pixels = mirror(pixels) if mirrored else pixels
        key = f"{way.backbone} {way.size} {hashlib.sha256(pixels.tobytes()).hexdigest()}"
        if key not in self._known:
            self._known[key] = self.backbone(way.backbone, way.size)(pixels)
        found = self._known[key][POOLINGS.index(way.pooling)]
        return unit(found) if way.unit and way.flip else found

    def file(self, name: str, size: int) -> Path:
        """The .keras file of a backbone that has been made."""
        return self._directory / f"{name}-{size}" / MODEL_FILE

    def _backbone(self, name: str, size: int) -> Pooled:
        path = self.file(name, size)
        return Pooled(load_backbone(path, make_backbone(name, size, None, path.parent)[0]), POOLED)


def framed(images: Sequence[Image.Image], way: Way) -> Pixels:
    """The pictures as the backbone takes them, uint8 (n, S, S, 3)."""
    return np.stack([FRAMINGS[way.framing](each, way.size) for each in images])


def mirror(pixels: Pixels) -> Pixels:
    """Every picture with left and right exchanged."""
    return np.ascontiguousarray(pixels[:, :, ::-1])


DEFAULT = Way()
"""The way that lookalike goes."""

BEFORE = replace(DEFAULT, framing="crop", size=96)
"""The original experiment's size and framing."""
