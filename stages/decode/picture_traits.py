"""What can be said of a picture's pixels in a word or a number: its brightness, contrast, sharpness and colour.

Computed in integers up to one last rounding, so it is the same on every machine. Knows no files and no ids.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from stages.record.framing import Pixels

BLACK, WHITE, GREY, RED, ORANGE, BROWN, YELLOW, GREEN, BLUE, PURPLE, PINK = COLOURS = (
    *("black", "white", "grey", "red", "orange", "brown", "yellow", "green", "blue", "purple", "pink"),
)
"""The names of colours."""

_DIGITS = 3  # of numbers, after the point
_TAILS = 100  # a hundredth of the pixels, at each end, does not count for the contrast
_EDGE = 3  # levels of 256: smaller differences are rounding, noise and gradients
_CALM = 8  # an eighth of a level for each pair is added, so that the few differences of a blurred picture count little
_SIDE = 48  # of the picture whose colours are counted, in pixels, at most
_BITS = 5  # of a sample, by which colours are told apart
_PLACES = np.array([1 << 2 * _BITS, 1 << _BITS, 1], np.float32)  # exact for so few bits, and faster than integers
_VIVID = 2  # a pixel of a colour counts as so many black, white or grey ones: people name a thing, not its background


class PictureTraits(NamedTuple):
    """brightness: the mean of the grey picture, 0 (black) to 1 (white). contrast: the span of its shades without the
    darkest and lightest hundredth of the pixels, 0 to 1. sharpness: the share of the differences between neighbouring
    pixels that a blur over three pixels takes away, 0 to 1. Few are left to take away in a blurred picture: sharp
    photographs have 0.35 to 0.65, see docs/quality.md. 0 if nothing differs. colour: one of COLOURS, the one that most
    of the picture has."""

    brightness: float
    contrast: float
    sharpness: float
    colour: str


def picture_traits(pixels: Pixels) -> PictureTraits:
    """The traits of a picture without padding, uint8 (h, w, 3) RGB, of any size and shape."""
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    grey = picture.convert("L")
    counts = np.array(grey.histogram(), np.int64)
    total = int(counts.sum())
    brightness = _share(int(counts @ np.arange(256)), 255 * total)
    return PictureTraits(brightness, _contrast(counts, total), _sharpness(np.asarray(grey)), _colour(picture))


def _share(part: int, whole: int) -> float:
    return round(part / whole, _DIGITS) if whole else 0.0


def _contrast(counts: NDArray[np.int64], total: int) -> float:
    """counts: (256,), of the pixels of each shade."""
    below = np.cumsum(counts)
    low, high = np.searchsorted(below, (total // _TAILS, total - 1 - total // _TAILS), "right")
    return _share(int(high - low), 255)


def _sharpness(grey: Pixels) -> float:
    """Like the measure of F. Crété and others, "The blur effect" (2007), which does not depend on contrast."""
    shades = grey.astype(np.int16)
    kept = whole = pairs = 0
    for before, one, other, after in _fours(shades):
        differences = np.abs(one - other)
        differences *= differences >= _EDGE
        differences *= 3
        blurred = np.abs(after - before)  # of the sums of three pixels around one and the other
        kept += int(np.minimum(differences, blurred).sum(dtype=np.int64))
        whole += int(differences.sum(dtype=np.int64))
        pairs += differences.size
    return _share(_CALM * (whole - kept), _CALM * whole + 3 * pairs)


def _fours(shades: NDArray[np.int16]) -> list[list[NDArray[np.int16]]]:
    """Each four pixels in a row that follow each other, in both directions: the first ones, the second ones, …"""
    height, width = shades.shape
    across = [shades[:, start : max(start, width - 3 + start)] for start in range(4)]
    return [across, [shades[start : max(start, height - 3 + start)] for start in range(4)]]


def _colour(picture: Image.Image) -> str:
    factor = max(1, max(picture.size) // _SIDE)
    small = np.asarray(picture.reduce(factor)) >> (8 - _BITS)
    numbers = (small.reshape(-1, 3) @ _PLACES).astype(np.intp)
    counts = np.bincount(_NAMES.take(numbers), minlength=len(COLOURS))
    counts[3:] *= _VIVID
    return COLOURS[int(counts.argmax())]


def _named() -> NDArray[np.uint8]:
    """The number of the name of each colour of _BITS bits a sample, (2^15,)."""
    levels = (np.arange(1 << 3 * _BITS)[:, np.newaxis] >> np.array([2 * _BITS, _BITS, 0])) & ((1 << _BITS) - 1)
    samples = levels * 255 // ((1 << _BITS) - 1)
    red, green, blue = samples.T
    light, dark = samples.max(axis=1), samples.min(axis=1)
    chroma = light - dark
    # In degrees.
    hue = (
        np.where(
            light == red,
            60 * (green - blue),
            np.where(light == green, 60 * (blue - red) + 120 * chroma, 60 * (red - green) + 240 * chroma),
        )
        // np.maximum(chroma, 1)
        % 360
    )
    pale = chroma * 100 < 45 * light
    rules = {
        BLACK: light < 45,
        GREY: (chroma < 24) | (chroma * 100 < 16 * light),
        WHITE: (light >= 230) & (chroma * 100 < 25 * light) & (hue >= 20) & (hue < 70),  # cream
        BROWN: pale & (light < (np.where(hue < 20, 190, 230))) & ((hue < 45) | (hue >= 345))
        | (hue >= 14) & (hue < 45) & (light < 185),
        PINK: ((hue < 18) | (hue >= 345)) & pale | (hue >= 290) & (hue < 345) & (light >= 150),
        RED: (hue < 14) | (hue >= 330),
        ORANGE: hue < 42,
        YELLOW: hue < 68,
        GREEN: hue < 165,
        BLUE: hue < 255,
    }
    found = np.select(list(rules.values()), [COLOURS.index(name) for name in rules], COLOURS.index(PURPLE))
    greys = np.where(light >= 200, COLOURS.index(WHITE), COLOURS.index(GREY))
    return np.where(found == COLOURS.index(GREY), greys, found).astype(np.uint8)


_NAMES = _named()
