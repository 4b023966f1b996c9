"""The float64 brute force that every search is compared with: obviously right, and slow."""

import numpy as np
from numpy.typing import NDArray

from stages.knn.backend import Backend, Vectors


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


def check_bound(proposer: Backend, family: Vectors, count: int, candidates: int) -> None:
    """No approximate distance of the first vectors exceeds the bound, and no row that is left out is nearer than the
    furthest candidate may be."""
    with np.errstate(over="ignore"):
        approximate, rows = proposer.candidates(family[:count], candidates)
    assert rows.dtype == np.int64
    double = family.astype(np.float64)
    norms = (double**2).sum(axis=1)
    for query in range(count):
        usable = (rows[query] >= 0) & np.isfinite(approximate[query])
        row = rows[query][usable]
        true = ((double[query] - double[row]) ** 2).sum(axis=1)
        sums = norms[query] + norms[row]
        slack = proposer.rounding.relative * sums + proposer.rounding.absolute
        bounded = 2 * sums < np.finfo(np.float32).max
        assert (approximate[query][usable] - slack <= true)[bounded].all()
        if usable.all() and bounded.all():
            others = np.setdiff1d(np.arange(len(family)), row)
            beyond = ((double[query] - double[others]) ** 2).sum(axis=1)
            least = approximate[query].max() - proposer.rounding.absolute
            least -= proposer.rounding.relative * (norms[query] + norms[others])
            assert (least <= beyond)[2 * (norms[query] + norms[others]) < np.finfo(np.float32).max].all()
