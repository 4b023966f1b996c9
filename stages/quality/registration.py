"""Registration: whether one picture is a changed copy of another, told from their thumbnails.

One is laid on the other as well as it can be: turned as their hashes say, shifted, scaled and sheared a little, and its
colours mapped. What then differs anywhere is not the work of a program that saves, scales, crops or brightens pictures:
the two are different pictures. Knows thumbnails and hashes, no files, no vectors and no library.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from stages.record.hashes import TURNS, turned

_Floats = np.ndarray[Any, np.dtype[np.float32]]

_LEVELS = ((32, 15), (64, 8), (96, 5))  # sides of the squares that are laid on each other, and the steps at each
_SIDE = _LEVELS[-1][0]
_RED, _GREEN, _BLUE = 0.299, 0.587, 0.114  # their shares of brightness
_LONGEST_STEP, _LAST_STEP = 0.15, 0.002  # in halves of a side
_FARTHEST = 0.5  # the most that a term of the map may be from that of no change
_LEAST_OVERLAP = 0.6  # of either picture, that the other one shows as well
_MARGIN = 5  # pixels at the edges that are left out: corners that a rotation fills, and frames
_CLIPPED = 6  # levels from black and white within which samples say nothing about the colours' map
_LEAST_USUAL = 100  # pixels that are not so, from which colours are mapped
_TINT = 12  # the most that the colours of a copy are shifted, in levels
# The limits of a copy, chosen in docs/quality.md.
_SMALLEST = 40  # pixels of the shorter side of a thumbnail: icons show too little
_LEAST_ALIKE = 0.9
_HOPELESS = 0.7  # the correlation at a small size below which nothing is compared at a larger one
_WORST, _WORST_SHARE = 16.0, 0.6  # the most that copies differ in any window: in levels, and in deviations
_WINDOW = 8  # pixels a side within which differences are averaged: noise and compression end there


class PicturePyramid(NamedTuple):
    """A picture ready to be compared. shorter: its shorter side in pixels. levels: by side, float32 (side, side, 3),
    whatever its shape."""

    shorter: int
    levels: dict[int, _Floats]


class PictureAlignment(NamedTuple):
    """Two pictures laid on each other. alike: the correlation of their brightness, up to 1. worst: the largest
    difference within a window, in levels of 256. contrast: the deviation of the plainer one, in the same."""

    turn: int
    alike: float
    worst: float
    contrast: float


def pyramid(thumbnail: bytes) -> PicturePyramid:
    """The look of a JPEG file."""
    picture = Image.open(io.BytesIO(thumbnail)).convert("RGB")
    squares = {}
    for side, _ in _LEVELS:
        way = Image.Resampling.BOX if min(picture.size) >= side else Image.Resampling.BICUBIC
        squares[side] = np.asarray(picture.resize((side, side), way), np.float32)
    return PicturePyramid(min(picture.size), squares)


def copy_turn(one: PicturePyramid, other: PicturePyramid, hashes: tuple[int, int], bits: int) -> int | None:
    """The turn that lays the other picture on the first one, if one of them is a copy of the other; else None.

    hashes: their perceptual hashes. bits: in which these may differ as one lies on the other.
    """
    if min(one.shorter, other.shorter) < _SMALLEST:
        return None
    return next((fit.turn for fit in alignments(one, other, hashes, bits) if _is_of_a_copy(fit)), None)


def _is_of_a_copy(fit: PictureAlignment) -> bool:
    return fit.alike >= _LEAST_ALIKE and fit.worst <= min(_WORST, _WORST_SHARE * fit.contrast)


def alignments(
    one: PicturePyramid, other: PicturePyramid, hashes: tuple[int, int], bits: int
) -> Iterator[PictureAlignment]:
    """The ways in which the other picture lies on the first one, of those in which their hashes agree in all but so
    many bits; the most alike hashes first."""
    first, second = np.uint64(hashes[0]), np.array([hashes[1]], np.uint64)
    apart = [int(np.bitwise_count(first ^ turned(second, turn)[0])) for turn in range(TURNS)]
    for turn in sorted(range(TURNS), key=lambda each: (apart[each], each)):
        if apart[turn] <= bits:
            lain = {side: _turned(square, turn) for side, square in other.levels.items()}
            found = _fit(one.levels, lain, turn)
            if found is not None:
                yield found


def _turned(square: _Floats, turn: int) -> _Floats:
    square = square.transpose(1, 0, 2) if turn & 4 else square
    return np.ascontiguousarray(square[:: -1 if turn & 1 else 1, :: -1 if turn & 2 else 1])


def _fit(one: dict[int, _Floats], other: dict[int, _Floats], turn: int) -> PictureAlignment | None:
    placed = np.eye(3)
    for side, steps in _LEVELS:
        found = _aligned(_blurred(_grey(one[side])), _blurred(_grey(other[side])), placed, steps)
        if found is None:
            return None
        sampled, inside = _sampled(one[side], found)
        if _correlation(sampled, other[side], inside) < _HOPELESS:
            return None
        placed = found
    return _compared(one[_SIDE], other[_SIDE], placed, turn)


def _aligned(one: _Floats, other: _Floats, placed: Any, steps: int) -> Any:
    """The affine map, (3, 3), from the second square to the first, improved; None if they do not fit. The method is
    Baker's and Matthews' inverse compositional one: the gradients are those of the second square, for all steps."""
    x, y = _grid(len(other))
    down, across = np.gradient(other, 2 / len(other))
    ones = np.ones_like(other)
    jacobian = np.stack([across, across * x, across * y, down, down * x, down * y, other, ones]).reshape(8, -1)
    for _ in range(steps):
        sampled, inside = _sampled(one, placed)
        held = inside.ravel()
        if held.mean() < _LEAST_OVERLAP:
            return None
        target = other.ravel()[held]
        values = sampled.ravel()[held]
        values = (values - values.mean()) * (target.std() / (values.std() + 1e-3)) + target.mean()
        rows = jacobian[:, held]
        # Not by BLAS, whose last digits depend on its threads: a verdict must not.
        normal = np.einsum("in,jn->ij", rows, rows) + np.eye(8) * (1e-3 * rows.shape[1])
        step = np.linalg.solve(normal, np.einsum("in,n->i", rows, values - target))[:6]
        step = np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        change = np.array([[1 + step[1], step[2], step[0]], [step[4], 1 + step[5], step[3]], [0, 0, 1]])
        placed = placed @ np.linalg.inv(change) if abs(np.linalg.det(change)) > 0.1 else placed
        if np.abs(placed - np.eye(3)).max() > _FARTHEST:
            return None
        if np.abs(step).max() < _LAST_STEP:
            break
    return placed


def _compared(one: _Floats, other: _Floats, placed: Any, turn: int) -> PictureAlignment | None:
    sampled, inside = _sampled(one, placed)
    for edge in (inside[:_MARGIN], inside[-_MARGIN:], inside[:, :_MARGIN], inside[:, -_MARGIN:]):
        edge[:] = False
    usual = inside & _unclipped(sampled) & _unclipped(other)
    if usual.sum() < _LEAST_USUAL:
        return None
    # Colours can be taken away, and brightness clipped, and neither be put back: one way is enough.
    ways = ((sampled, other), (other, sampled))
    worst = min(float(_differences(more, fewer, inside, usual).max()) for more, fewer in ways)
    contrast = float(min(_grey(square)[inside].std() for square in ways[0]))
    return PictureAlignment(turn, _correlation(sampled, other, inside), worst, contrast)


def _correlation(one: _Floats, other: _Floats, inside: Any) -> float:
    """Of the brightness of two squares, in some of their pixels; 0 for a plain one."""
    mine, theirs = _grey(one)[inside], _grey(other)[inside]
    mine, theirs = mine - mine.mean(), theirs - theirs.mean()
    return float((mine * theirs).sum() / np.sqrt((mine**2).sum() * (theirs**2).sum() + 1e-3))


def _differences(more: _Floats, fewer: _Floats, inside: Any, usual: Any) -> _Floats:
    """Within each window, between the first square in the second one's colours and the second one."""
    difference = _blurred(_recoloured(more, fewer, usual) - fewer)
    difference[~inside] = 0
    squares: _Floats = np.sum([_windows(difference[..., colour]) ** 2 for colour in range(3)], axis=0) / 3
    local: _Floats = np.sqrt(squares[_windows(inside.astype(np.float32)) > 0.9])
    return local


def _recoloured(more: _Floats, fewer: _Floats, usual: Any) -> _Floats:
    """The first square with the second one's brightness, contrast and strength of colours, which are fitted where both
    are usual; its hues stay."""
    luma, target = map(_grey, (more, fewer))
    gain = _slope(luma[usual], target[usual])
    brightness = gain * (luma - luma[usual].mean()) + target[usual].mean()
    chroma, wanted = more - luma[..., np.newaxis], fewer - target[..., np.newaxis]
    strength = _slope(chroma[usual], wanted[usual])
    tint = np.clip((wanted - strength * chroma)[usual].mean(axis=0), -_TINT, _TINT)
    made: _Floats = np.clip(brightness[..., np.newaxis] + strength * chroma + tint, 0, 255)
    return made


def _slope(values: _Floats, target: _Floats) -> float:
    """Of the line through the means that is nearest to the targets; 0 if it would fall."""
    values, target = values - values.mean(axis=0), target - target.mean(axis=0)
    return max(0.0, float((values * target).sum() / ((values**2).sum() + 1e-3)))


def _unclipped(square: _Floats) -> Any:
    return ((square > _CLIPPED) & (square < 255 - _CLIPPED)).all(axis=2)


def _grey(square: _Floats) -> _Floats:
    grey: _Floats = _RED * square[..., 0] + _GREEN * square[..., 1] + _BLUE * square[..., 2]
    return grey


def _grid(side: int) -> tuple[_Floats, _Floats]:
    """The places of a square's pixels, across and down, from -1 to 1."""
    places = ((np.arange(side, dtype=np.float32) + 0.5) / side) * 2 - 1
    across, down = np.meshgrid(places, places)
    return across, down


def _sampled(square: _Floats, placed: Any) -> tuple[_Floats, Any]:
    """The square at the places that the map gives for each pixel, between pixels linearly, and which lie inside."""
    side = len(square)
    x, y = _grid(side)
    across = (placed[0, 0] * x + placed[0, 1] * y + placed[0, 2]).astype(np.float32)
    down = (placed[1, 0] * x + placed[1, 1] * y + placed[1, 2]).astype(np.float32)
    inside = (np.abs(across) <= 1) & (np.abs(down) <= 1)
    across = np.clip((across + 1) * (side / 2) - 0.5, 0, side - 1.001)
    down = np.clip((down + 1) * (side / 2) - 0.5, 0, side - 1.001)
    column, row = across.astype(np.int32), down.astype(np.int32)
    across, down = across - column, down - row
    if square.ndim == 3:
        across, down = across[..., np.newaxis], down[..., np.newaxis]
    flat = square.reshape(side * side, *square.shape[2:])
    place = row * side + column
    above = flat[place] * (1 - across) + flat[place + 1] * across
    below = flat[place + side] * (1 - across) + flat[place + side + 1] * across
    return above * (1 - down) + below * down, inside


def _blurred(square: _Floats) -> _Floats:
    """Each pixel with its neighbours, by halves."""
    for axis in (0, 1):
        edges = [(1, 1) if each == axis else (0, 0) for each in range(square.ndim)]
        padded = np.pad(square, edges, "edge")
        last = padded.shape[axis]
        parts = (np.take(padded, np.arange(start, last - 2 + start), axis) for start in range(3))
        before, middle, after = parts
        square = (before + 2 * middle + after) / 4
    return square


def _windows(square: _Floats) -> _Floats:
    """The mean of each window."""
    summed = np.pad(square, ((1, 0), (1, 0))).cumsum(0, np.float64).cumsum(1)
    inner, w = summed, _WINDOW
    total = inner[w:, w:] - inner[:-w, w:] - inner[w:, :-w] + inner[:-w, :-w]
    means: _Floats = (total / w**2).astype(np.float32)
    return means
