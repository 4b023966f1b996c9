"""Vectors in a metric: their validity, their norms, and the exact distance between two of them.

The distance is defined only here and is the same on every machine: differences, squares and numpy's pairwise sum, all
in float64 and without BLAS, rounded to float32 last. Knows no search.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from stages.datum.contract import StageError
from stages.knn.backend import DOUBLE, SINGLE, SMALLEST, Distances, Floats, Rows, Vectors, gamma

UNIT_ROUNDING = 1e-6
"""More than the error of |û - v̂|² for unit vectors rounded to float32, which is 4.9e-7."""

LONGEST = 1.7e38
"""The largest norm of a vector: the distance of two such ones is still a finite float32."""

_DIFFERENCES = 1 << 19
"""Bytes of float64 differences held at once, small enough for a core's second-level cache."""

_SCAN = 16 << 20
"""Bytes of float32 vectors checked in one step."""


class VectorSet:
    """n vectors of dimension d with a metric.

    vectors: float32 (n, d), C order, as given (a memory map stays one). prepared: the vectors that backends search by
    Euclidean distance: `vectors` themselves or, for "cosine", their float32 unit vectors, a copy made when it is first
    asked for; `units` gives those of some. norm_bounds: float64 (n,), upper bounds of the norms of `prepared`.

    checked: of vectors that were checked before, of which nothing is read until it is needed. Otherwise raises
    StageError for a vector with NaN, infinities or a norm beyond float32, naming its picture by `ids` (default:
    row numbers), and for anything but a float32 matrix.
    """

    def __init__(
        self,
        vectors: Vectors,
        metric: str = "euclidean",
        ids: Sequence[str] | None = None,
        checked: bool = False,
    ) -> None:
        if vectors.ndim != 2 or vectors.dtype != np.float32 or vectors.shape[1] == 0:
            raise StageError(
                f"vectors must be a float32 matrix with one row for each picture, "
                f"not {vectors.dtype} of shape {vectors.shape}"
            )
        self.vectors: Vectors = np.ascontiguousarray(vectors).view(np.ndarray)
        self.metric = metric
        self._ids = ids
        if not checked:
            self.norm_bounds, self._lengths = self._norms()

    @cached_property
    def norm_bounds(self) -> Floats:
        """float64 (n,): see the class."""
        return self._norms()[0]

    @cached_property
    def prepared(self) -> Vectors:
        """float32 (n, d): see the class."""
        return self.units(slice(None))

    @property
    def rows(self) -> "PreparedRows":
        """`prepared`, of which "cosine" has no copy: its rows are made when they are read."""
        return self.prepared if self.metric == "euclidean" or "prepared" in self.__dict__ else UnitRows(self)

    @cached_property
    def _lengths(self) -> Floats:
        """The exact norms, float64 (n,), for "cosine"."""
        return self._norms()[1]

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dimension(self) -> int:
        """Length of one vector."""
        return int(self.vectors.shape[1])

    def must_match(self, library: "VectorSet") -> None:
        """Raises ValueError if the library has another metric or dimension: there are no distances to it."""
        mine, theirs = (self.metric, self.dimension), (library.metric, library.dimension)
        if mine != theirs:
            raise ValueError(f"queries of {mine} cannot be compared with a library of {theirs}")

    def part(self, rows: "slice | Rows") -> "VectorSet":
        """Some of the vectors, without checking them again."""
        some = VectorSet.__new__(VectorSet)
        some.metric = self.metric
        some.vectors = self.vectors[rows]
        known = {name: getattr(self, name) for name in ("norm_bounds", "prepared", "_lengths") if name in self.__dict__}
        for name, each in known.items():
            setattr(some, name, some.vectors if each is self.vectors else each[rows])
        some._ids = None
        return some

    @classmethod
    def gathered(cls, sets: "Sequence[VectorSet]", of: Rows, rows: Rows) -> "VectorSet":
        """Row `rows[i]` of set `of[i]` for each i, out of sets of one metric, without checking them again."""
        together = cls.__new__(cls)
        together.metric, together._ids = sets[0].metric, None
        together.vectors = np.empty((len(rows), sets[0].dimension), np.float32)
        for each in np.unique(of).tolist():
            here = np.flatnonzero(of == each)
            together.vectors[here] = sets[each].vectors[rows[here]]
        return together

    def distances(self, rows: Rows, others: "VectorSet", other_rows: Rows) -> Distances:
        """Exact distances of pairs: vector `rows[i]` of these to `other_rows[i]` of the others; float32 (pairs,).

        euclidean: |q - x|. cosine: 1 - cos(q, x), computed as |q/|q| - x/|x||²/2 so that rounding does not erase small
        distances; a zero vector is at 0 from another zero vector and at 1 from all others.
        """
        found = np.empty(len(rows), dtype=np.float32)
        step = max(1, _DIFFERENCES // (8 * self.dimension))
        for start in range(0, len(rows), step):
            mine, theirs = rows[start : start + step], other_rows[start : start + step]
            if self.metric == "euclidean":
                difference = self.vectors[mine].astype(np.float64)
                difference -= others.vectors[theirs]
            else:
                difference = self.directions(mine) - others.directions(theirs)
            squares = sums_of_squares(difference)
            if self.metric == "cosine":
                squares += (self._lengths_of(mine) == 0) != (others._lengths_of(theirs) == 0)
            found[start : start + step] = self.finish(squares)
        return found

    def lower_bounds(self, rows: Rows, others: "VectorSet", other_rows: Rows) -> Distances:
        """Lower bounds of the result of `distances` for the same pairs, in a third of its time.

        Computed in float32 from the differences of `prepared`, so the error of d successive roundings is relative to
        the distance itself, and near-duplicates are told apart, too.
        """
        squares = np.empty(len(rows), dtype=np.float64)
        step = max(1, _DIFFERENCES // (8 * self.dimension))
        with np.errstate(over="ignore"):
            for start in range(0, len(rows), step):
                mine, theirs = rows[start : start + step], other_rows[start : start + step]
                difference = others.units(theirs)
                difference -= self.prepared[mine[:1] if (mine == mine[0]).all() else mine]  # often one vector
                squares[start : start + step] = np.einsum("ij,ij->i", difference, difference)
        np.minimum(squares, np.finfo(np.float32).max, out=squares)  # after an overflow, only this much is certain
        squares *= 1 - 2 * gamma(self.dimension + 8, SINGLE)
        squares -= 2 * self.dimension * SMALLEST
        if self.metric == "cosine":
            squares -= UNIT_ROUNDING
        return self.at_least(squares)

    def directions(self, rows: "slice | Rows") -> Floats:
        """float64 (rows, d): the vectors themselves or, for "cosine", divided by their norms (zero stays zero)."""
        double = self.vectors[rows].astype(np.float64)
        if self.metric == "cosine":
            lengths = self._lengths_of(rows)
            double /= np.where(lengths > 0, lengths, 1)[:, None]
        return double

    def finish(self, squares: Floats) -> Distances:
        """The distances, float32, for squared Euclidean distances of `directions`. Monotonic."""
        if self.metric == "euclidean":
            return np.sqrt(squares).astype(np.float32)
        return (squares / 2).astype(np.float32)

    def at_least(self, squares: Floats) -> Distances:
        """Lower bounds of `distances` for pairs whose true squared distance is at least `squares`.

        Allows for the roundings of `distances` itself. NaN stays NaN.
        """
        return self.finish(np.maximum(squares, 0) * (1 - 4 * gamma(self.dimension + 8, DOUBLE)))

    def at_most(self, distances: Distances) -> Floats:
        """Squared distances beyond which `at_least` gives more than these distances; infinite for infinite ones."""
        with np.errstate(over="ignore"):
            beyond = np.nextafter(distances, np.float32(np.inf)).astype(np.float64)
        squares = beyond**2 if self.metric == "euclidean" else 2 * beyond
        return squares * (1 + 1e-12) / (1 - 4 * gamma(self.dimension + 8, DOUBLE))

    def _lengths_of(self, rows: "slice | Rows") -> Floats:
        """The exact norms of some vectors, without reading the others."""
        if "_lengths" in self.__dict__:
            return self._lengths[rows]
        lengths: Floats = np.sqrt(sums_of_squares(self.vectors[rows].astype(np.float64)))
        return lengths

    def _norms(self) -> tuple[Floats, Floats]:
        """Upper bounds of the norms of `prepared`, and the exact norms (for cosine only)."""
        count, cosine = len(self), self.metric == "cosine"
        norm_bounds = np.empty(count, dtype=np.float64)
        lengths = np.zeros(count, dtype=np.float64)
        step = max(1, _SCAN // (4 * self.dimension))
        for start in range(0, count, step):
            block = self.vectors[start : start + step]
            # A float32 pass is several times faster, and bounds the norm unless it overflows.
            squares = np.einsum("ij,ij->i", block, block).astype(np.float64)
            squares = squares * (1 + 2 * gamma(self.dimension + 8, SINGLE)) + 2 * self.dimension * SMALLEST
            for row in np.flatnonzero(~np.isfinite(squares)):
                squares[row] = sums_of_squares(block[row : row + 1].astype(np.float64))[0] * (1 + 1e-9)
            norm_bounds[start : start + step] = np.sqrt(squares)
            self._check(norm_bounds[start : start + step], start)
            if cosine:
                for row in range(0, len(block), max(1, step // 16)):
                    some = slice(start + row, min(start + row + max(1, step // 16), start + len(block)))
                    lengths[some] = np.sqrt(sums_of_squares(self.vectors[some].astype(np.float64)))
        return (np.full(count, 1 + 1e-6) if cosine else norm_bounds), lengths

    def _check(self, norm_bounds: Floats, start: int) -> None:
        bad = np.flatnonzero(~(norm_bounds <= LONGEST))
        if not len(bad):
            return
        row = start + int(bad[0])
        who = self._ids[row] if self._ids is not None else f"in row {row}"
        what = "is too long for float32" if np.isfinite(norm_bounds[bad[0]]) else "has numbers that are NaN or infinite"
        raise StageError(
            f"the vector of picture {who} {what}: the model cannot be used for this picture. "
            "Push a model that gives finite vectors (lookalike model push)"
        )

    def units(self, rows: "slice | Rows") -> Vectors:
        """Some rows of `prepared`, of which no others are made. A slice of "euclidean" is not copied."""
        if self.metric == "euclidean" or "prepared" in self.__dict__:
            return self.prepared[rows] if self.metric == "cosine" else self.vectors[rows]
        some, lengths = self.vectors[rows], self._lengths_of(rows)
        units = np.empty_like(some)
        step = max(1, _DIFFERENCES // (8 * self.dimension))
        for start in range(0, len(some), step):
            here = slice(start, start + step)
            np.divide(
                some[here], np.where(lengths[here] > 0, lengths[here], 1)[:, None], out=units[here], casting="same_kind"
            )
        return units


class UnitRows:
    """The unit vectors of a VectorSet, float32 (n, d), of which none is kept."""

    def __init__(self, points: VectorSet) -> None:
        self._points = points
        self.shape = points.vectors.shape

    def __len__(self) -> int:
        return len(self._points)

    def __getitem__(self, some: slice) -> Vectors:
        return self._points.units(some)


PreparedRows = Vectors | UnitRows
"""A matrix, or what gives slices of it."""


def sums_of_squares(double: Floats) -> Floats:
    """Sum of squares of each row of float64 (n, d), overwriting it; the same on every machine.

    np.add.reduce over the last, contiguous axis adds pairwise in an order that depends on the length alone; that of
    einsum and dot depends on the processor.
    """
    np.multiply(double, double, out=double)
    return np.asarray(np.add.reduce(double, axis=1))
