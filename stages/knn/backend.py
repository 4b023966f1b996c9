"""The protocol between the exact search and the backends that propose candidates, and their error bounds.

Knows no backend: each has a module of its own beside this one.
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

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
"""The smallest normal float32: the most that a product loses where small numbers are flushed to zero."""


@dataclass(frozen=True)
class RoundingBound:
    """The error bound of a backend: how far above the true value its squared distance may be.

    true ≥ approximate - relative × (|q|² + |x|²) - absolute, for every pair whose squared norms, added and doubled,
    do not overflow float32. Errors downwards are unbounded: a backend may round small distances to zero, as cuML does.
    """

    relative: float
    absolute: float


class Backend(Protocol):
    """Proposes, for each query, the nearest library rows by a fast, inexact squared distance."""

    name: str
    rounding: RoundingBound
    concurrent: bool
    """Whether it is best called from several threads at once, since it runs all but the product in one."""

    def candidates(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        """The `count` rows of the library with the smallest approximate squared distances.

        queries: float32 (n, d), C order. count: 1 to the number of rows of the library. Returns approximate squared
        Euclidean distances, float32 (n, count), and rows, int64 (n, count), in any order; if the backend finds fewer,
        the missing rows are -1 at infinite distance. Exact search requires that every row that is not returned has an
        approximate distance of at least the largest returned.
        """
        ...


@runtime_checkable
class MeasuringBackend(Backend, Protocol):
    """A backend that can also give the true distances of what it proposes."""

    def measured(self, queries: Vectors, count: int) -> tuple[Distances, Rows, Distances | None]:
        """`candidates`, and the distance of each to its query: float32 (n, count), to the bit as `VectorSet.distances`
        defines it for "euclidean"; meaningless where no row was found. None if it cannot measure now."""
        ...


@dataclass(frozen=True)
class PreparedQueries:
    """m queries, ready to be compared with libraries whose `BoundsProvider.scheme` is one object.

    factor, offset: float64 (m,), factor > 0: the squared distance of query i from row j is at least
    factor[i] × number + offset[i], for the number of `BoundsProvider.bounds`. inputs: what the library needs.
    """

    factor: Floats
    offset: Floats
    inputs: Any

    def squares(self, numbers: Distances) -> Floats:
        """The lower bounds for numbers of shape (m, any)."""
        return self.factor[:, None] * numbers.astype(np.float64) + self.offset[:, None]


@runtime_checkable
class BoundsProvider(Protocol):
    """Bounds all distances at once: for few queries, whose candidates then need not be guessed in number."""

    @property
    def scheme(self) -> object:
        """Libraries with one scheme can share what was asked."""
        ...

    def ask(self, queries: Vectors) -> PreparedQueries:
        """Prepares queries, float32 (m, d), C order."""
        ...

    def bounds(self, asked: PreparedQueries) -> Distances:
        """Numbers that order the n rows of the library by lower bounds of their distances: float32 (m, n), without NaN,
        -inf where nothing is known."""
        ...


class LibraryCopy(BoundsProvider, Protocol):
    """A smaller copy of a library, with quicker and looser bounds."""

    centre: Vectors
    """float32 (d,), the point that all vectors are shifted by."""

    usable: bool
    """Whether it bounds anything: whether no vector is out of its range."""


def gamma(operations: float, roundoff: float) -> float:
    """Higham's γ: the largest relative error of that many successive roundings."""
    share = operations * roundoff
    return share / (1 - share) if share < 0.5 else float("inf")


def expanded(dimension: int, roundoff: float = SINGLE, growth: float = 1) -> RoundingBound:
    """The error bound of |q|² + |x|² - 2 q·x for vectors of that dimension, whatever the order of summation.

    The error of the two norms is at most γ(d)(|q|² + |x|²) and, by the Cauchy–Schwarz inequality, that of twice the
    product as much again; adding the parts costs a few more roundings. `growth` multiplies the roundings of one
    multiply-add. The direct form Σ(q - x)², which FAISS uses for few queries, has the same bound.
    """
    return RoundingBound(
        relative=2 * gamma(growth * (dimension + 8), roundoff),
        absolute=8 * dimension * SMALLEST,
    )


def lower_squares(mine: Floats, lengths: Floats, theirs: Floats) -> Floats:
    """Lower bounds of the squared distances of all pairs, float64 (queries, rows); negative if unknown."""
    sums = lengths[:, None] + np.einsum("ij,ij->i", theirs, theirs)[None, :]
    squares = mine @ theirs.T
    squares *= -2
    squares += sums
    sums *= 2 * gamma(mine.shape[1] + 8, DOUBLE)
    squares -= sums
    return squares
