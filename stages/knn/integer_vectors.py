"""Vectors as 8-bit integers: a scale, the integers and bounds of what they lose. Knows no product and no search."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from stages.knn.backend import SINGLE, Distances, Floats, Mask, Vectors, gamma

Int8Array = np.ndarray[Any, np.dtype[np.int8]]

_FARTHEST, _FINEST = 1e9, 1e-9
"""The range of norms and scales in which nothing overflows or vanishes in float32. Others get no bounds."""

_ROUNDINGS = 16 * SINGLE
"""More than the sum of a bound's roundings, relative to |q|² + |x|²: 4 units of float32 from shifting both vectors, 6
from |x|²/2, which is rounded most often, and 3 from the product of integers, which is no larger."""

_NOTHING = 1e-16
"""More than a norm loses through squares that vanish in float32, or through the errors of subnormal numbers."""


@dataclass(frozen=True)
class IntegerVectors:
    """n vectors as scale · whole + rest.

    whole: int8 (n, d). The others are (n,): scale float32; square float64, a lower bound of the squared norm; norm,
    rest and kept float64, upper bounds of the norms of the vector, of rest and of scale · whole. All allow for the
    roundings of a bound that is computed from them.
    """

    whole: Int8Array
    scale: Distances
    square: Floats
    norm: Floats
    rest: Floats
    kept: Floats

    def part(self, chosen: Mask) -> "IntegerVectors":
        """Some of them."""
        return IntegerVectors(**{each.name: getattr(self, each.name)[chosen] for each in fields(self)})


def integers(vectors: Vectors, centre: Vectors, steps: int) -> IntegerVectors:
    """The vectors minus the centre, float32 (d,), as integers from -steps to steps; any values for those that are not
    `within`."""
    roundings = gamma(vectors.shape[1] + 8, SINGLE)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        moved = vectors - centre
        squares = np.einsum("ij,ij->i", moved, moved).astype(np.float64)
        furthest = np.maximum(moved.max(axis=1), -moved.min(axis=1))
        scale = np.maximum(furthest / np.float32(steps), np.float32(_FINEST))
        numbers = moved * (1 / scale)[:, None]
        np.rint(numbers, out=numbers)
        whole = numbers.astype(np.int8)
        numbers *= scale[:, None]
        kept = _norm(np.einsum("ij,ij->i", numbers, numbers), roundings)
        numbers -= moved
        rest = _norm(np.einsum("ij,ij->i", numbers, numbers), roundings) + _ROUNDINGS * kept
        least_square = squares * (1 - roundings) * (1 - _ROUNDINGS)
    return IntegerVectors(whole, scale, least_square, _norm(squares, roundings), rest, kept)


def _norm(squares: "Distances | Floats", roundings: float) -> Floats:
    norms: Floats = np.sqrt(squares.astype(np.float64) * (1 + roundings)) * (1 + 2 * _ROUNDINGS) + _NOTHING
    return norms


def within(vectors: IntegerVectors) -> Mask:
    """Which of them are short enough for the bounds and finite."""
    short: Mask = (vectors.norm <= _FARTHEST) & np.isfinite(vectors.scale)
    return short
