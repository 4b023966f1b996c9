"""Vectors rounded to 8 bits a number, as the index stores them beside the vectors: what a search of few queries reads
first, to rule out most rows without reading their vectors.

A vector x is written as x̂ + e: x̂ = scale · whole + offset in each number, with scale and offset of its own, so that a
row is a function of its vector alone. By the triangle inequality |q - x| ≥ |q - x̂| - |e|, and |e| is known. The product
q·x̂ is computed in float32, with a bound of its rounding errors. Knows no files and no backend.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from stages.knn.backend import SINGLE, Distances, Floats, Mask, Rows, Vectors, gamma
from stages.knn.top_k import NONE, TopK, empty, merge, smallest
from stages.knn.vector_set import LONGEST, VectorSet, sums_of_squares

_STEPS = 127
_BLOCK = 1024
"""Rows that are rounded or compared at once."""

_ROUNDINGS = 1e-9
"""More than the sum of all roundings in float64, relative to the numbers that are rounded."""

Records = np.ndarray[Any, np.dtype[np.void]]


def record(dimension: int) -> "np.dtype[np.void]":
    """The type of a row. whole: the integers. rest: an upper bound of |e|. square: |x̂|². length: |x|. All of a vector
    that is not finite are NaN, and its integers 0."""
    return np.dtype(
        [
            ("square", "<f8"),
            ("length", "<f8"),
            ("scale", "<f4"),
            ("offset", "<f4"),
            ("rest", "<f4"),
            ("whole", "i1", (dimension,)),
        ]
    )


def rounded(vectors: Vectors) -> Records:
    """The rows of n vectors, float32 (n, d)."""
    rows = np.zeros(len(vectors), record(vectors.shape[1]))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for start in range(0, len(vectors), _BLOCK):
            _round(vectors[start : start + _BLOCK], rows[start : start + _BLOCK])
    return rows


def _round(vectors: Vectors, rows: Records) -> None:
    double = vectors.astype(np.float64)
    least, most = double.min(axis=1), double.max(axis=1)
    rows["scale"] = scale = ((most - least) / (2 * _STEPS)).astype(np.float32)
    rows["offset"] = offset = ((most + least) / 2).astype(np.float32)
    steps = np.where(scale > 0, scale, 1).astype(np.float64)[:, None]
    whole = np.rint((double - offset[:, None]) / steps)
    finite = np.isfinite(whole).all(axis=1)
    whole = np.clip(np.where(finite[:, None], whole, 0), -_STEPS, _STEPS)
    rows["whole"] = whole
    near = whole * scale.astype(np.float64)[:, None] + offset.astype(np.float64)[:, None]
    rest = np.sqrt(sums_of_squares(near - double)) * (1 + _ROUNDINGS)
    rows["length"] = length = np.sqrt(sums_of_squares(double))
    rows["square"] = sums_of_squares(near)
    rows["rest"] = np.nextafter((rest + _ROUNDINGS * length).astype(np.float32), np.float32(np.inf))
    for name in ("square", "length", "scale", "offset", "rest"):
        rows[name][~finite] = np.nan


class CoarseRows:
    """The rows of n vectors of dimension d."""

    def __init__(self, rows: Records) -> None:
        """rows: of the type `record`."""
        self._rows = rows
        self.usable = bool((rows["length"] <= LONGEST).all())
        """Whether all vectors have distances: those that are not finite have no bounds."""

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """The bytes that it takes."""
        return self._rows.nbytes

    def lower_bounds(self, queries: VectorSet) -> Distances:
        """Lower bounds of the distances of all pairs as `VectorSet.distances` gives them, float32 (m, n)."""
        found = np.empty((len(queries), len(self)), np.float32)
        points = queries.directions(slice(None))
        lengths = np.sqrt(sums_of_squares(points.copy()))
        units = (points / np.where(lengths > 0, lengths, 1)[:, None]).astype(np.float32)
        for start in range(0, len(self), _BLOCK):
            block = self._rows[start : start + _BLOCK]
            squares = _least_squares(units, lengths, block, queries.metric == "cosine")
            found[:, start : start + _BLOCK] = queries.at_least(squares)
        if queries.metric == "cosine":
            found[lengths == 0] = 0
        return found


def _least_squares(units: Vectors, lengths: Floats, rows: Records, cosine: bool) -> Floats:
    """Lower bounds of the squared distances of queries, given by direction and length, and rows, (m, n)."""
    dimension = units.shape[1]
    factor = 1 / np.where(rows["length"] > 0, rows["length"], 1) if cosine else np.ones(len(rows))
    scale, offset, rest = (rows[name].astype(np.float64) for name in ("scale", "offset", "rest"))
    products = (units @ rows["whole"].astype(np.float32).T).astype(np.float64) * scale
    products += units.astype(np.float64).sum(axis=1)[:, None] * offset
    # |scale · whole| is at most |x̂| + |offset| √d. Two roundings more are those of the unit vectors.
    reach = np.sqrt(rows["square"]) + 2 * np.abs(offset) * dimension**0.5
    products += (2 * gamma(dimension + 8, SINGLE) + _ROUNDINGS) * reach
    squares = lengths[:, None] ** 2 + (factor**2 * rows["square"])[None]
    squares -= 2 * lengths[:, None] * (factor * products) + _ROUNDINGS * squares
    least = np.sqrt(np.maximum(squares, 0)) - factor * rest * (1 + _ROUNDINGS)
    if cosine:
        least[:, rows["length"] == 0] = 0
    bounds: Floats = np.maximum(least - _ROUNDINGS * lengths[:, None], 0) ** 2
    return bounds


def nearest(
    coarse: CoarseRows,
    queries: VectorSet,
    k: int,
    exclude: Rows,
    fetch: Callable[[Rows], VectorSet],
    within: Mask | None,
) -> TopK:
    """The k nearest rows of each query, by distance, then by row; min(k, rows that may be neighbours) columns.

    exclude: int64 (m,), for each query a row to leave out, or NONE. fetch: gives the library, of which these rows have
    been read, among others. within: bool (n,), the only rows that may be neighbours; None for all.
    """
    bounds = coarse.lower_bounds(queries)
    if within is not None:
        bounds[:, ~within] = np.inf
    known = np.flatnonzero(exclude != NONE)
    bounds[known, exclude[known]] = np.inf
    found = empty(len(queries), min(k, len(coarse) if within is None else int(within.sum())))
    if not found.rows.size:
        return found
    likely = bounds <= smallest(bounds, None, found.rows.shape[1])[0].max(axis=1, keepdims=True)
    for chosen in (likely, ~likely):
        query, row = np.nonzero(chosen & np.isfinite(bounds) & ~(bounds > found.distances[:, -1:]))
        if len(row):
            library = fetch(np.unique(row))
            found = merge(found, query, queries.distances(query, library, row), row)
    return found
