"""The perceptual hash of a picture: 64 bits that stay nearly the same when it is compressed, scaled or brightened.

After the hash of Zauner's thesis, known as pHash: the signs of the lowest frequencies of the picture in grey. There
they are taken about their median; about zero, the hash of a turned or mirrored picture follows from that of the picture
(stages.record.hashes). Knows no files and no ids.

Several square pictures together take less time for each, since Pillow computes its filter once for all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from stages.record.framing import Pixels
from stages.record.hashes import BITS

_SIDE = 32  # of the grey picture, in pixels
_LOW = 8  # frequencies in each direction
_ONE = 1 << 20  # the cosine of zero
# A drawing, a page or a sign is flat in places and of one brightness in many. In parts of the span of brightness, so
# that a copy of less contrast is judged alike; chosen in docs/quality.md.
_SPAN = 0.05, 0.95  # quantiles between which it lies
_FLAT = 1 / 80  # the most of the span within 3 × 3 pixels that are flat
_SOME_FLAT, _MOST_FLAT = 0.02, 0.15  # shares of such places
_BAND = 1 / 20  # of the span: pixels within it are alike
_MANY_ALIKE = 0.25  # the most of all pixels that may be alike, if some places are flat
_FAINT, _FAINT_ALIKE = 60, 0.2  # a span in levels of 256, and the same for a picture of less: text that scaling greyed
_MOST_ALIKE = 0.35  # the same for any picture
_LEVELS = 256  # of brightness
_TOGETHER = 1 << 18  # pixels of pictures that are scaled together: they fit into a processor's cache


def _cosines() -> NDArray[np.int64]:
    """The first rows of the DCT-II, (_LOW, _SIDE), in units of 1 / _ONE."""
    angles = np.outer(np.arange(_LOW), 2 * np.arange(_SIDE) + 1) * (np.pi / (2 * _SIDE))
    cosines: NDArray[np.int64] = np.rint(np.cos(angles) * _ONE).astype(np.int64)
    return cosines


_DCT = _cosines()


def perceptual_hash(pixels: Pixels) -> int:
    """The hash, from 0 to 2^64 - 1, of a picture without padding, uint8 (h, w, 3) RGB, of any size and shape;
    NO_VERDICT for one that is flat, a page, a sign or a drawing: hashes of these agree by chance.

    Its bits are row by row, the first one the highest, those of the frequencies above zero. Computed in integers,
    below 2^58, so it is the same on every machine: a sum of floating-point numbers would depend on its order, and a
    frequency near zero would flip its bit.
    """
    grey = Image.fromarray(np.ascontiguousarray(pixels)).convert("L")
    small = np.asarray(grey.resize((_SIDE, _SIDE), Image.Resampling.LANCZOS))
    return _signs(small[np.newaxis])[0]


def perceptual_hashes(squares: Pixels) -> list[int]:
    """The hash of each square picture, uint8 (n, side, side, 3) RGB: that of `perceptual_hash`."""
    step = max(1, _TOGETHER // max(1, squares.shape[1] ** 2))
    found = []
    for first in range(0, len(squares), step):
        found += _signs(_scaled(squares[first : first + step]))
    return found


def _scaled(squares: Pixels) -> Pixels:
    """In grey and at _SIDE pixels a side, (n, _SIDE, _SIDE).

    Pillow scales rows, and then columns, each row and each column on its own, and not at all along an axis that keeps
    its length. So one above the other their rows are scaled as for each alone, and side by side their columns.
    """
    count, side = squares.shape[:2]
    grey = Image.fromarray(np.ascontiguousarray(squares).reshape(count * side, side, 3)).convert("L")
    narrow = np.asarray(grey.resize((_SIDE, count * side), Image.Resampling.LANCZOS)).reshape(count, side, _SIDE)
    abreast = Image.fromarray(narrow.transpose(1, 0, 2).reshape(side, count * _SIDE))
    small = np.asarray(abreast.resize((count * _SIDE, _SIDE), Image.Resampling.LANCZOS))
    return small.reshape(_SIDE, count, _SIDE).transpose(1, 0, 2)


def _signs(small: Pixels) -> list[int]:
    """The hashes of pictures in grey, (n, _SIDE, _SIDE)."""
    across = (small @ _DCT.T.astype(np.float64)).astype(np.int64)  # below 2^33: exact, and faster than in integers
    frequencies = (_DCT @ across).reshape(-1, BITS)
    above = frequencies > 0
    above[:, 0] = True  # the brightness, so that no hash is NO_VERDICT by chance
    above[~_says_something(small)] = False
    hashes: list[int] = np.packbits(above, axis=1).view(">u8").ravel().tolist()
    return hashes


def _says_something(small: Pixels) -> NDArray[np.bool_]:
    """(n,): whether pictures in grey, (n, _SIDE, _SIDE), have the detail and the many shades of photographs."""
    highest, lowest = small, small
    for axis in (1, 2):
        highest, lowest = (_over_three(each, axis, of) for each, of in ((highest, np.maximum), (lowest, np.minimum)))
    pixels = small.reshape(len(small), -1)
    below = _counts(pixels).cumsum(axis=1)
    size = pixels.shape[1]
    low, high = ((below <= round(share * (size - 1))).sum(axis=1) for share in _SPAN)
    span = high - low
    flat = np.mean((highest - lowest) <= _FLAT * span[:, np.newaxis, np.newaxis], axis=(1, 2))
    most = np.where(flat > _SOME_FLAT, _MANY_ALIKE, _MOST_ALIKE)
    most = np.where(span < _FAINT, _FAINT_ALIKE, most)
    return np.asarray((flat <= _MOST_FLAT) & (_alike(below, _BAND * span) / size <= most))


def _counts(pixels: Pixels) -> NDArray[np.int64]:
    """How many pixels have each level: (n, _LEVELS) of (n, m)."""
    numbers = pixels + _LEVELS * np.arange(len(pixels))[:, np.newaxis]
    return np.bincount(numbers.ravel(), minlength=_LEVELS * len(pixels)).reshape(-1, _LEVELS)


def _alike(below: NDArray[np.int64], band: NDArray[np.float64]) -> NDArray[np.int64]:
    """The most pixels within a band, (n,), of brightness. below: how many have at most each level, (n, _LEVELS)."""
    ends = np.minimum(np.arange(_LEVELS) + band[:, np.newaxis], _LEVELS - 1).astype(np.intp)
    within = np.take_along_axis(below, ends, axis=1)
    within[:, 1:] -= below[:, :-1]
    return np.asarray(within.max(axis=1))


def _over_three(pixels: Pixels, axis: int, of: np.ufunc) -> Pixels:
    """The largest or smallest of each three neighbours along an axis."""
    first, second, third = (np.take(pixels, range(start, pixels.shape[axis] - 2 + start), axis) for start in range(3))
    found: Pixels = of(of(first, second), third)
    return found
