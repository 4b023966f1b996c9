"""The NumPy backend: brute force on the CPU, as one matrix product and a selection that costs little beside it.

NumPy's BLAS is newer than the one in FAISS's wheel and knows newer processors.
"""

import numpy as np

from stages.knn.backend import SINGLE, Distances, Floats, PreparedQueries, RoundingBound, Rows, Vectors, expanded
from stages.knn.blas_threads import others_turn
from stages.knn.top_k import NONE, least, room, smallest
from stages.knn.vector_set import PreparedRows

_COLUMNS = 8192
"""Library rows multiplied at once. This and the next two change the time and the memory of a search, never its
answer."""

_TILE_BYTES = 80 << 20
"""Size of a product: for fewer queries at once BLAS would spend its time on rearranging the library."""

_CHUNK_BYTES = 1 << 19
"""Size of the part of a product that is searched at once, which stays in a core's second-level cache."""

_LONGEST = float(np.finfo(np.float32).max) / 32
"""Of squared norms: below it, all parts of a bound are finite."""


class NumpyBackend:
    """Brute force over the library in place, memory-mapped or not: nothing is copied or trained."""

    name = "numpy"
    concurrent = True
    scheme: object = "float32"

    def __init__(self, library: PreparedRows) -> None:
        """library: float32 (n, d), C order, or what gives its rows when they are needed: then nothing is read now."""
        self._library = library
        self._known = _halves(library) if isinstance(library, np.ndarray) else None
        self.rounding: RoundingBound = expanded(library.shape[1])
        self._slack = self.rounding.relative + 32 * SINGLE  # for the additions in `ask` and `bounds`

    def candidates(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        """See Backend.candidates. Pairs that overflow float32 are not proposed, or only at infinite distance."""
        distances = np.empty((len(queries), count), np.float32)
        rows = np.empty((len(queries), count), np.int64)
        step = max(1, _TILE_BYTES // (4 * min(_COLUMNS, len(self._library))))
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(queries), step):
                part = slice(start, start + step)
                distances[part], rows[part] = self._tile(queries[part], count)
        return distances, rows

    def ask(self, queries: Vectors) -> PreparedQueries:
        """See BoundsProvider.ask."""
        with np.errstate(over="ignore"):
            squares: Floats = np.einsum("ij,ij->i", queries, queries).astype(np.float64)
        offset = np.where(squares < _LONGEST, squares * (1 - self._slack), 0) - self.rounding.absolute
        return PreparedQueries(np.full(len(queries), 2.0), offset, (queries, ~(squares < _LONGEST)))

    def bounds(self, asked: PreparedQueries) -> Distances:
        """See BoundsProvider.bounds."""
        queries, too_long = asked.inputs
        numbers = np.empty((len(queries), len(self._library)), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(self._library), _COLUMNS):
                here = numbers[:, start : start + _COLUMNS]
                with others_turn():
                    library, halves = self._rows(slice(start, start + _COLUMNS))
                    product = queries @ library.T
                    np.subtract(halves - np.float32(self._slack) * halves, product, out=here)
                here[:, np.flatnonzero(~(halves < _LONGEST))] = -np.inf
        numbers[too_long] = -np.inf
        return numbers

    def _rows(self, some: slice) -> tuple[Vectors, Distances]:
        """Some rows of the library, and the halves of their squared norms, infinite ones included: see `candidates`."""
        rows = self._library[some]
        return rows, _halves(rows) if self._known is None else self._known[some]

    def _tile(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        halves, rows = self._columns(queries, slice(0, _COLUMNS), count)
        for start in range(_COLUMNS, len(self._library), _COLUMNS):
            more, further = self._columns(queries, slice(start, start + _COLUMNS), count)
            together = np.concatenate([halves, more], axis=1), np.concatenate([rows, further], axis=1)
            halves, rows = smallest(*together, count)
        return 2 * halves + np.einsum("ij,ij->i", queries, queries)[:, None], rows

    def _columns(self, queries: Vectors, columns: slice, count: int) -> tuple[Distances, Rows]:
        """|x|²/2 - q·x, half of a squared distance less |q|², for some rows of the library: at least the `count`
        smallest, or all if there are fewer."""
        library, halves = self._rows(columns)
        too_long = np.flatnonzero(~np.isfinite(halves))
        with others_turn():
            product = queries @ library.T
        width = room(len(library))
        step = max(1, min(_CHUNK_BYTES // (4 * width), len(queries)))
        chunk = np.full((step, width), np.inf, np.float32)
        found = []
        for start in range(0, len(queries), step):
            some = product[start : start + step]
            # Into memory that stays in the cache: writing the product back would cost as much bandwidth again.
            np.subtract(halves, some, out=chunk[: len(some), : len(library)])
            # Infinity minus infinity would hide other rows. For all other rows |x| is small enough that products with
            # the queries that `Certified` settles are finite.
            chunk[: len(some), too_long] = np.inf
            found.append(least(chunk[: len(some)], count))
        distances = np.concatenate([each[0] for each in found])
        rows = np.concatenate([each[1] for each in found])
        return distances, np.where(np.isposinf(distances), NONE, rows + columns.start)


def _halves(rows: Vectors) -> Distances:
    with np.errstate(over="ignore"):
        halves: Distances = np.einsum("ij,ij->i", rows, rows) / 2
    return halves
