"""A picture without any symmetry, and its files, for the tests of decoders."""

import io
from typing import Any

import numpy as np
import pillow_heif
from PIL import Image

from stages.record.framing import Pixels

pillow_heif.register_heif_opener()

SIDE = 96


def scene(width: int = SIDE, height: int = SIDE, bands: int = 3) -> Pixels:
    """A picture with smooth parts, an edge and no symmetry; uint8 (height, width, bands)."""
    rows, columns = np.mgrid[0:height, 0:width] / max(width, height)
    layers = [rows * 200, columns * 250, (rows + columns) * 120, 255 * columns**2][:bands]
    picture = np.stack(layers, axis=-1)
    picture[: height // 3, : width // 4] = 250
    rounded: Pixels = picture.round().astype(np.uint8)
    return rounded


def encode(picture: Image.Image, kind: str, **options: Any) -> bytes:
    """The picture's file."""
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()
