"""The perceptual hash of a picture: 64 bits that stay nearly the same when it is compressed, scaled or brightened.

The hash of Zauner's thesis, known as pHash: the signs, about their median, of the lowest frequencies of the picture in
grey. Knows no files and no ids.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from stages.framing import Pixels
from stages.hashes import BITS

_SIDE = 32  # of the grey picture, in pixels
_LOW = 8  # frequencies in each direction
_ONE = 1 << 20  # the cosine of zero


def _cosines() -> NDArray[np.int64]:
    """The first rows of the DCT-II, (_LOW, _SIDE), in units of 1 / _ONE."""
    angles = np.outer(np.arange(_LOW), 2 * np.arange(_SIDE) + 1) * (np.pi / (2 * _SIDE))
    cosines: NDArray[np.int64] = np.rint(np.cos(angles) * _ONE).astype(np.int64)
    return cosines


_DCT = _cosines()


def perceptual_hash(pixels: Pixels) -> int:
    """The hash, from 0 to 2^64 - 1, of a picture without padding, uint8 (h, w, 3) RGB, of any size and shape.

    Its bits are row by row, the first one the highest, those of the frequencies above the median of all but the
    constant one. Computed in integers, below 2^58, so it is the same on every machine: a sum of floating-point numbers
    would depend on its order, and a frequency near the median would flip its bit.
    """
    grey = Image.fromarray(np.ascontiguousarray(pixels)).convert("L")
    small = np.asarray(grey.resize((_SIDE, _SIDE), Image.Resampling.LANCZOS), np.int64)
    frequencies = (_DCT @ small @ _DCT.T).ravel()
    above = frequencies > np.sort(frequencies[1:])[(BITS - 1) // 2]
    return int.from_bytes(np.packbits(above).tobytes(), "big")
