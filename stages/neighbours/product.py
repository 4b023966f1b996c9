"""Owns the NumPy backend: brute force on the CPU as one matrix product and a selection that costs little beside it.

NumPy's BLAS is newer than that in FAISS's wheel and knows newer processors. Of a product's rows the smallest are found
without sorting: the minima of groups of columns are a few hundred numbers, the count-th smallest of these is a limit
that at least `count` columns keep, and hardly more than that have to be looked at.
"""

import numpy as np

from stages.neighbours.backend import Distances, Rounding, Rows, Vectors, expanded
from stages.neighbours.found import NONE
from stages.neighbours.threads import others_turn

_COLUMNS = 8192
"""Library rows multiplied at once."""

_TILE_BYTES = 80 << 20
"""Of a product. Fewer queries at once and BLAS would spend its time on rearranging the library for each product."""

_CHUNK_BYTES = 1 << 19
"""Of a product that is looked through at once: it stays in a core's second-level cache."""

_GROUPS = 8
"""Groups of columns for each candidate wanted."""


class Product:
    """Brute force over the library where it lies, memory-mapped or not: nothing is copied and nothing trained."""

    name = "numpy"
    concurrent = True

    def __init__(self, library: Vectors) -> None:
        """library: float32 (n, d), C order."""
        self._library = library
        with np.errstate(over="ignore"):  # infinite then: see `candidates`
            self._halves = np.einsum("ij,ij->i", library, library) / 2
        self.rounding: Rounding = expanded(library.shape[1])

    def candidates(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        """See Backend.candidates. Pairs whose parts overflow are not proposed, or with a distance that is infinite."""
        distances = np.empty((len(queries), count), np.float32)
        rows = np.empty((len(queries), count), np.int64)
        step = max(1, _TILE_BYTES // (4 * min(_COLUMNS, len(self._library))))
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(queries), step):
                part = slice(start, start + step)
                distances[part], rows[part] = self._tile(queries[part], count)
        return distances, rows

    def _tile(self, queries: Vectors, count: int) -> tuple[Distances, Rows]:
        halves, rows = self._columns(queries, slice(0, _COLUMNS), count)
        for start in range(_COLUMNS, len(self._library), _COLUMNS):
            more, further = self._columns(queries, slice(start, start + _COLUMNS), count)
            together = np.concatenate([halves, more], axis=1), np.concatenate([rows, further], axis=1)
            halves, rows = _smallest(*together, count)
        return 2 * halves + np.einsum("ij,ij->i", queries, queries)[:, None], rows

    def _columns(self, queries: Vectors, columns: slice, count: int) -> tuple[Distances, Rows]:
        """|x|²/2 - q·x, half of what a distance is beyond |q|², for some of the library: at least its `count` smallest,
        or all if there are fewer."""
        library, halves = self._library[columns], self._halves[columns]
        with others_turn():
            product = queries @ library.T
        groups = _GROUPS * count
        depth = -(-len(library) // groups)
        step = max(1, _CHUNK_BYTES // (4 * groups * depth))
        chunk = np.full((min(step, len(queries)), groups * depth if depth > 1 else len(library)), np.inf, np.float32)
        found = []
        for start in range(0, len(queries), step):
            some = product[start : start + step]
            # Into memory that stays in the cache: written back, the product would cost the bus as much again.
            np.subtract(halves, some, out=chunk[: len(some), : len(library)])
            part = chunk[: len(some)]
            found.append(_least(part, count, groups) if depth > 1 else _smallest(part, None, count))
        distances = np.concatenate([each[0] for each in found])
        rows = np.concatenate([each[1] for each in found])
        return distances, np.where(np.isposinf(distances), NONE, rows + columns.start)


def _least(chunk: Distances, count: int, groups: int) -> tuple[Distances, Rows]:
    """The `count` smallest of each row and their columns; the row's width is a multiple of `groups`."""
    by_group = chunk.reshape(len(chunk), -1, groups)
    minima = by_group.min(axis=1)
    limits = np.partition(minima, count - 1, axis=1)[:, count - 1]
    row, group = np.divmod(np.flatnonzero(minima <= limits[:, None]), groups)
    values = by_group[row, :, group]
    pair, member = np.divmod(np.flatnonzero(values <= limits[row][:, None]), values.shape[1])
    row, column = row[pair], member * groups + group[pair]
    held = np.bincount(row, minlength=len(chunk))
    place = np.arange(len(row)) - (np.cumsum(held) - held)[row]
    width = max(count, int(held.max()))
    distances = np.full((len(chunk), width), np.inf, np.float32)
    columns = np.full((len(chunk), width), NONE, np.int64)
    distances[row, place], columns[row, place] = values[pair, member], column
    return _smallest(distances, columns, count)


def _smallest(distances: Distances, columns: Rows | None, count: int) -> tuple[Distances, Rows]:
    """The `count` smallest of each row, in any order, and what `columns` has there (their places if that is None)."""
    if columns is None:
        columns = np.broadcast_to(np.arange(distances.shape[1]), distances.shape)
    if distances.shape[1] <= count:
        return distances.copy(), columns.copy()
    best = np.argpartition(distances, count - 1, axis=1)[:, :count]
    return np.take_along_axis(distances, best, axis=1), np.take_along_axis(columns, best, axis=1)
