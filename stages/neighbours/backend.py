"""Owns the protocol between the exact search and the libraries that propose its candidates, and their error bounds.

Knows no such library: each has a module of its own beside this one.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Vectors = np.ndarray[Any, np.dtype[np.float32]]
Distances = np.ndarray[Any, np.dtype[np.float32]]
Rows = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Floats = np.ndarray[Any, np.dtype[np.float64]]

SINGLE = 2.0**-24
"""Unit roundoff of float32."""

DOUBLE = 2.0**-53
"""Unit roundoff of float64."""

SMALLEST = 2.0**-126
"""The smallest normal float32: what a product may lose where small numbers are flushed to zero."""


@dataclass(frozen=True)
class Rounding:
    """How far above the true value a backend's squared distance may lie.

    true ≥ approximate - relative × (|q|² + |x|²) - absolute, for every pair whose squared norms, added and doubled,
    do not overflow float32. Only this side is promised: a backend may round small distances down to zero (cuML does).
    """

    relative: float
    absolute: float


@dataclass(frozen=True)
class Probe:
    """Some queries whose answers are known already, for a backend that pays for some vectors only.

    queries: float32 (n, d), as the backend would get them. near, far: float64 (n,), the squared distances of the last
    neighbour that is wanted and of the last candidate that would be asked for.
    """

    queries: Vectors
    near: Floats
    far: Floats


class Backend(Protocol):
    """Proposes, for each query, the library rows that look nearest by a fast, inexact squared distance."""

    name: str
    rounding: Rounding
    concurrent: bool
    """Whether it is best asked from several threads at once, since it leaves all but the product to one."""

    def candidates(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        """The `count` rows of the library with the smallest approximate squared distances.

        queries: float32 (n, d), C order. count: 1 to the number of rows of the library. Returns approximate squared
        Euclidean distances, float32 (n, count), and rows, int64 (n, count), in any order; a row is -1 and its
        distance infinite where the backend found fewer. Exact search needs every row that is not returned to have an
        approximate distance of at least the largest returned.
        """
        ...


def gamma(operations: float, roundoff: float) -> float:
    """Higham's γ: the most by which that many roundings in a row can change a value, relative to it."""
    share = operations * roundoff
    return share / (1 - share) if share < 0.5 else float("inf")


def expanded(dimension: int, roundoff: float = SINGLE, growth: float = 1) -> Rounding:
    """The error bound of |q|² + |x|² - 2 q·x for vectors of that dimension, whatever the order of summation.

    The two norms are off by at most γ(d)(|q|² + |x|²) and, by Cauchy and Schwarz, twice the product by as much again;
    a few more roundings join the parts. `growth` multiplies the roundings of one multiply-add. The direct form
    Σ(q - x)², which FAISS takes for few queries, stays below the same bound.
    """
    return Rounding(
        relative=2 * gamma(growth * (dimension + 8), roundoff),
        absolute=8 * dimension * SMALLEST,
    )


def parts_of_vector(dimension: int) -> int:
    """How many parts a product quantiser cuts a vector into: the most, up to 64, that divide it evenly."""
    return next(parts for parts in range(min(64, dimension), 0, -1) if dimension % parts == 0)
