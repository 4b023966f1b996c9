"""The place of a picture on the map: the mean of the places of the pictures of a layout that are nearest to it.

It follows from the picture's vector and the layout alone, so another picture moves none. All sums are exact, or have a
fixed order: equal input gives equal bytes on every machine. Knows no files and no stage.
"""

import numpy as np
from numpy.typing import NDArray

from stages.files.layout_files import Layout
from stages.knn.backend import Vectors

NEIGHBOURS = 4
"""The pictures of a layout that give a place, of which the last has no weight: by it the others are weighed."""

_BLOCK = 32 << 20
"""Bytes of distances that are held at once."""


def place(layout: Layout, prepared: Vectors) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """The places of pictures, float32 (n, 2), and the clusters of those nearest to them in the layout, int32 (n,).
    prepared: their vectors as the layout's metric has them, float32 (n, d), finite.

    A picture with the vector of one in the layout has its place.
    """
    points = layout.points.astype(np.float64)
    halves = (points * points).sum(axis=1)
    positions = np.empty((len(prepared), 2), np.float32)
    clusters = np.empty(len(prepared), np.int32)
    step = max(1, _BLOCK // (8 * len(layout)))
    for start in range(0, len(prepared), step):
        some = layout.project(prepared[start : start + step])
        squares = (some * some).sum(axis=1)[:, None] + halves - 2 * (some @ points.T)
        nearest, found = _nearest(squares)
        positions[start : start + step] = _mean(layout.positions[nearest].astype(np.float64), found)
        clusters[start : start + step] = layout.clusters[nearest[:, 0]]
    return positions, clusters


def _nearest(squares: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The columns of the least whole numbers of each row, and these; equal ones in the order of columns: (n, k)."""
    count = squares.shape[1]
    keys = squares.astype(np.int64) * count + np.arange(count)  # below 2**44 × 2**17
    k = min(NEIGHBOURS, count)
    first = np.sort(np.partition(keys, k - 1, axis=1)[:, :k], axis=1)
    return first % count, (first // count).astype(np.float64)


def _mean(places: NDArray[np.float64], squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The means of places, (n, k, 2), weighed by how much nearer each is than the last, (n, 2)."""
    limit = np.maximum(squares[:, -1:], 1.0)
    weights = ((limit - squares) / np.maximum(squares, 1.0)) ** 2
    weights[squares[:, 0] == 0] = 0
    weights[:, 0] = np.where((squares[:, 0] == 0) | (squares[:, 0] == limit[:, 0]), 1.0, weights[:, 0])
    total = np.zeros(len(places))
    sums = np.zeros((len(places), 2))
    for column in range(places.shape[1]):  # one after the other: a sum of NumPy's has no fixed order
        total += weights[:, column]
        sums += weights[:, column, None] * places[:, column]
    return sums / total[:, None]
