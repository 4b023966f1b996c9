"""cuML's brute force in float32, as stages.knn.cuml_backend and the steps call it."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np


class NearestNeighbors:
    """Searches all pairs by the expansion of the squares."""

    def __init__(
        self,
        *,
        n_neighbors: int = 5,
        algorithm: str = "auto",
        metric: str = "euclidean",
        output_type: str = "numpy",
    ) -> None:
        if algorithm != "brute" or metric not in ("euclidean", "sqeuclidean"):
            raise ValueError(algorithm, metric)
        self._count, self._metric, self._output_type = n_neighbors, metric, output_type

    def fit(self, X: Any) -> NearestNeighbors:
        """Keeps the library, (n, d)."""
        self._library = np.array(X, np.float32)
        self._norms = (self._library**2).sum(axis=1)
        return self

    def kneighbors(self, X: Any, n_neighbors: int | None = None) -> tuple[Any, Any]:
        """Distances and rows of the nearest, each (queries, n_neighbors)."""
        queries = np.asarray(X, np.float32)
        squares = (queries**2).sum(axis=1)[:, None] + self._norms[None, :] - 2 * (queries @ self._library.T)
        count = n_neighbors or self._count
        proposed = np.argpartition(squares, min(count, squares.shape[1] - 1), axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(squares, proposed, axis=1), axis=1)
        rows = np.take_along_axis(proposed, order, axis=1)
        found = np.maximum(np.take_along_axis(squares, rows, axis=1), 0)
        if self._metric == "euclidean":
            found = np.sqrt(found)
        return self._given(found), self._given(rows)

    def _given(self, values: Any) -> Any:
        return cupy.asarray(values) if self._output_type == "cupy" else values
