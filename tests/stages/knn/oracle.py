"""The float64 brute force that every search is compared with: obviously right, and slow."""

import numpy as np
from numpy.typing import NDArray

from stages.knn.backend import Vectors


def brute(
    queries: Vectors, library: Vectors, k: int, metric: str = "euclidean", exclude: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Distances (float32) and rows of the k nearest, all pairs in float64, ties by row. `exclude` is a row for
    each query to leave out, or -1."""
    q, x = queries.astype(np.float64), library.astype(np.float64)
    if metric == "cosine":
        q = q / np.where((n := np.sqrt((q * q).sum(axis=1))) > 0, n, 1)[:, None]
        x = x / np.where((n := np.sqrt((x * x).sum(axis=1))) > 0, n, 1)[:, None]
    distances = np.empty((len(q), len(x)), dtype=np.float32)
    for row, query in enumerate(q):
        squares = ((query - x) ** 2).sum(axis=1)
        if metric == "cosine":
            squares += query.any() != x.any(axis=1)
        distances[row] = np.sqrt(squares) if metric == "euclidean" else squares / 2
    if exclude is not None:
        known = np.flatnonzero(exclude >= 0)
        distances[known, exclude[known]] = np.inf
    rows = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, rows, axis=1), rows
