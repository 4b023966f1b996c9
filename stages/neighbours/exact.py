"""Owns the proof that an answer is exact: candidates from a backend, their true distances, and a certificate.

A backend's float32 expansion |q|² + |x|² - 2 q·x cannot tell near-duplicates apart, so its order is never trusted. Its
k + m nearest are compared anew by `Points.distances`; a query is settled only if its error bound proves that no row
outside of them can be among the k nearest. Otherwise m grows eightfold; what is still open is compared with all rows.
Answers therefore do not depend on the backend, its threads or its version. Knows no files and no pictures.
"""

from dataclasses import dataclass

import numpy as np

from stages.neighbours.backend import Backend, Distances, Floats, Mask, Rows
from stages.neighbours.exhaustive import compare_with_all
from stages.neighbours.found import NONE, Found, merge, nothing
from stages.neighbours.points import Points
from stages.neighbours.threads import cores, in_threads

EXTRA = 28
"""m: candidates beyond k. FAISS selects 32 of a row as fast as 8, and only doubtful ones cost a true comparison."""

WIDEN = 8
"""The factor by which m grows for queries that are not settled."""

ROUNDS = 2
"""How often a backend is asked before the rest is compared with all: a third time would cost as much as that."""

QUERY_BLOCK = 4096
"""Queries handled at once at most: FAISS's own block, so that nothing is multiplied in smaller pieces than it would be.
"""

_FEWEST = 64
"""Queries that are worth a thread."""

_BLOCK_OF_THREAD = 1280
"""Queries that a thread handles at once: as fast to multiply, and several turns of each thread."""

_UNIT_ROUNDING = 1e-6  # |û - v̂|² of float32 unit vectors is at most 4.9e-7 above that of the true ones
_LARGEST = float(np.finfo(np.float32).max) / 8  # of |q|² + |x|²: the expansion's parts stay finite below it


@dataclass
class Tally:
    """How the queries so far were settled: how many there were, were widened, and were compared with all rows."""

    queries: int = 0
    widened: int = 0
    exhaustive: int = 0

    def add(self, other: "Tally") -> None:
        """Counts those of another tally too."""
        self.queries += other.queries
        self.widened += other.widened
        self.exhaustive += other.exhaustive


class Exact:
    """The exact searcher: see the module. `tally` counts, for logs and measurements."""

    def __init__(self, library: Points, backend: Backend) -> None:
        """library: at least one point; the backend was built from `library.prepared`."""
        self._library = library
        self._backend = backend
        self._furthest = float(library.reach.max())
        self.tally = Tally()

    def search(self, queries: Points, k: int, exclude: Rows | None = None) -> Found:
        """The k nearest rows, exactly: see `Searcher`."""
        queries.must_match(self._library)
        if exclude is None:
            exclude = np.full(len(queries), NONE, dtype=np.int64)
        columns = max(0, min(k, len(self._library) - int(bool(len(exclude)) and bool((exclude != NONE).all()))))
        found = nothing(len(queries), columns)
        if not columns or not len(queries):
            return found
        blocks = self._blocks(len(queries))
        parts = in_threads(lambda block: self._block(queries.part(block), columns, exclude[block]), blocks)
        for block, (part, tally) in zip(blocks, parts, strict=True):
            found.distances[block], found.rows[block] = part.distances, part.rows
            self.tally.add(tally)
        return found

    def _blocks(self, count: int) -> list[slice]:
        """Equal parts of so many queries, as many for each core, where the backend leaves it to us to use them."""
        cores_ = max(1, min(cores(), count // _FEWEST)) if self._backend.concurrent else 1
        parts = cores_ * -(-count // (cores_ * (QUERY_BLOCK if cores_ == 1 else _BLOCK_OF_THREAD)))
        size = -(-count // parts)
        return [slice(start, start + size) for start in range(0, count, size)]

    def _block(self, queries: Points, k: int, exclude: Rows) -> tuple[Found, Tally]:
        found = nothing(len(queries), k)
        tally = Tally(queries=len(queries))
        open_: Rows = np.arange(len(queries))
        extra = EXTRA
        for turn in range(ROUNDS):
            if turn and (not len(open_) or 4 * (k + extra) > len(self._library)):
                break
            tally.widened += len(open_) if turn else 0
            count = min(k + extra + 1, len(self._library))  # one more, for the row that may be excluded
            part, settled = self._ask(queries.part(open_) if turn else queries, k, exclude[open_], count)
            found.distances[open_], found.rows[open_] = part.distances, part.rows
            open_ = open_[~settled]
            extra *= WIDEN
        if len(open_):
            part = compare_with_all(queries.part(open_), self._library, k, exclude[open_])
            found.distances[open_], found.rows[open_] = part.distances, part.rows
        tally.exhaustive = len(open_)
        return found, tally

    def _ask(self, queries: Points, k: int, exclude: Rows, count: int) -> tuple[Found, Mask]:
        """The k nearest among the backend's `count` candidates, and for which queries that is proven to be final."""
        approximate, rows = self._backend.candidates(queries.prepared, count)
        usable = (rows != NONE) & np.isfinite(approximate)
        allowed = usable & (rows != exclude[:, None])
        first = allowed & (np.cumsum(allowed, axis=1) <= k)
        found = self._compare(nothing(len(queries), k), queries, first, rows)

        least = self._least(queries, approximate, found.distances[:, -1])
        doubtful = allowed & ~first & ~(least > found.distances[:, -1:])
        found = self._compare(found, queries, doubtful, rows)

        worst = found.distances[:, -1]
        if count == len(self._library):
            beyond = np.full(len(queries), True)
        else:
            beyond = self._least(queries, approximate.max(axis=1, keepdims=True), worst)[:, 0] > worst
        return found, usable.all(axis=1) & beyond & self._bounded(queries, worst)

    def _compare(self, found: Found, queries: Points, chosen: Mask, rows: Rows) -> Found:
        query, column = np.nonzero(chosen)
        row = rows[query, column]
        return merge(found, query, queries.distances(query, self._library, row), row)

    def _least(self, queries: Points, approximate: Distances, worst: Distances) -> Distances:
        """The least true distance, as `Points.distances` would give it, of rows with these approximate ones."""
        rounding = self._backend.rounding
        squares = queries.reach**2 + self._relevant(queries, worst) ** 2
        slack = rounding.relative * squares + rounding.absolute
        if queries.metric == "cosine":
            slack += _UNIT_ROUNDING
        return self._library.at_least(approximate.astype(np.float64) - slack[:, None])

    def _relevant(self, queries: Points, worst: Distances) -> Floats:
        """The largest norm that a row as near as `worst` can have.

        By the triangle inequality rows with a norm above |q| + worst are further away than that, whatever their
        approximate distance says: a few huge vectors in a library must not spoil the bound for all.
        """
        if queries.metric == "cosine":
            return np.full(len(queries), self._furthest)
        return np.minimum(self._furthest, queries.reach + worst.astype(np.float64) * (1 + 1e-6) + 1e-44)

    def _bounded(self, queries: Points, worst: Distances) -> Mask:
        """Whether nothing that the bound speaks of can have overflowed float32."""
        return queries.reach**2 + self._relevant(queries, worst) ** 2 < _LARGEST
