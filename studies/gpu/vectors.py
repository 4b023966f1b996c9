"""Owns the vectors to search, the sizes of the searches, and the truth about them. Knows no searcher."""

import numpy as np
from numpy.typing import NDArray

from studies.gpu.notebook import REHEARSAL

Vectors = NDArray[np.float32]
Rows = NDArray[np.int64]

QUERIES, LIBRARY, DIMENSION = (200, 3_000, 256) if REHEARSAL else (10_000, 90_000, 2_048)
"""The article's search: queries, vectors of the library, and the numbers in each."""

MANY, ASKED, SHORT = (5_000, 100, 128) if REHEARSAL else (1_000_000, 1_000, 1_280)
"""A large library, its queries, and the dimension of efficientnet-lite0."""

K = 3

_PROPOSED = 40


def features(rows: int, dimension: int, seed: int) -> Vectors:
    """Vectors, float32 (rows, dimension), as after a ReLU and average pooling: none negative, about a third near 0."""
    drawn = np.random.default_rng(seed).standard_normal((rows, dimension), np.float32)
    return np.maximum(drawn + np.float32(0.4), 0, out=drawn)


def library() -> Vectors:
    """The article's library, made."""
    return features(LIBRARY, DIMENSION, 0)


def queries() -> Vectors:
    """The article's queries, made."""
    return features(QUERIES, DIMENSION, 1)


def truth(asked: Vectors, held: Vectors) -> Rows:
    """The rows of the K nearest, (n, K), in float64 on the processor: of all pairs by the expansion, the nearest few
    again by differences, ties by row. Independent of all that is measured."""
    double = held.astype(np.float64)
    squares = np.einsum("ij,ij->i", double, double)
    rows = np.empty((len(asked), K), np.int64)
    for start in range(0, len(asked), 500):
        some = asked[start : start + 500].astype(np.float64)
        near = squares[None, :] - 2 * (some @ double.T)
        proposed = np.sort(np.argpartition(near, min(_PROPOSED, len(held) - 1), axis=1)[:, :_PROPOSED], axis=1)
        for row, query in enumerate(some):
            # In float32, as lookalike orders them.
            exact = np.sqrt(((query - double[proposed[row]]) ** 2).sum(axis=1)).astype(np.float32)
            rows[start + row] = proposed[row][np.argsort(exact, kind="stable")[:K]]
    return rows


def agreement(found: Rows, true: Rows) -> dict[str, float]:
    """The share of the neighbours that are the true ones, and the number of queries with another one."""
    equal = found == true
    return {
        "neighbours": float(equal.mean()),
        "wrong queries": int((~equal.all(axis=1)).sum()),
        "queries": len(true),
    }
