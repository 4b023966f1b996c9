"""The exact search: which backends it asks for candidates, for how many, and in how many threads.

A backend's float32 expansion |q|² + |x|² - 2 q·x cannot tell near-duplicates apart, so its order is never trusted. It
proposes k + m candidates, and a query is settled only if these are proven to include its k nearest rows
(`CandidateProver`). Otherwise m grows eightfold, and queries that remain open are compared with all rows: the float64
expansion, whose error bound is 2²⁹ times tighter than in float32, rules out most of these, and `VectorSet.distances`
compares all the others. So answers do not depend on backends, threads or versions. Knows no files and no pictures.
"""

from dataclasses import dataclass

import numpy as np

from stages.knn.backend import Backend, Rows, lower_squares
from stages.knn.blas_threads import cores, in_threads
from stages.knn.bound_deviation import BoundDeviationError
from stages.knn.candidate_prover import CandidateProver
from stages.knn.fallback_backend import FallbackBackend
from stages.knn.top_k import NONE, TopK, empty, merge, stacked
from stages.knn.vector_set import VectorSet

EXTRA = 28
"""m: candidates beyond k. FAISS selects 32 of a row as fast as 8, and only the doubtful ones cost a true distance."""

WIDEN = 8
"""The factor by which m grows for queries that are not settled."""

ROUNDS = 2
"""Rounds of proposals before the open queries are compared with all rows; a third would cost as much as that."""

_AT_ONCE = 256
"""Queries compared with all rows in one step; no answer depends on it, nor on the next."""

_BLOCK_BYTES = 16 << 20
"""Size of the library's vectors compared in one step, as float64."""

_LARGEST = 4096
"""The most queries in one block without threads, as in FAISS, so that it multiplies no smaller pieces than on its own.
These numbers of queries change the time and the memory of a search, never its answer."""

_FEWEST = 64
"""The fewest queries for a thread."""

_OF_THREAD = 1280
"""The most queries in one block of a thread, which multiplies as fast and gives each thread several turns."""

_OVERLAPPED = 2048
"""The fewest queries of which a GPU gets half at a time, so that it proposes candidates for some while their true
distances are computed for others."""


@dataclass
class QueryTally:
    """Counts of queries: all so far, those that needed more candidates, and those that were compared with all rows."""

    queries: int = 0
    widened: int = 0
    exhaustive: int = 0

    def add(self, other: "QueryTally") -> None:
        """Adds the counts of another tally."""
        self.queries += other.queries
        self.widened += other.widened
        self.exhaustive += other.exhaustive


class ExactSearcher:
    """The exact searcher: see the module. Runs one search at a time. `tally` is for logs and measurements."""

    def __init__(self, library: VectorSet, backend: Backend) -> None:
        """library: at least one vector. backend: built from `library.prepared`."""
        self._library = library
        self._certified = CandidateProver(library, backend)
        self._backend = backend
        self.tally = QueryTally()

    def search(self, queries: VectorSet, k: int, exclude: Rows | None = None) -> TopK:
        """The k nearest rows, exactly: see `Searcher`. Raises Deviation if the backend turns out to break its bound and
        nothing can take its place."""
        queries.must_match(self._library)
        if exclude is None:
            exclude = np.full(len(queries), NONE, dtype=np.int64)
        columns = max(0, min(k, len(self._library) - int(bool(len(exclude)) and bool((exclude != NONE).all()))))
        if not columns or not len(queries):
            return empty(len(queries), columns)
        try:
            return self._answer(queries, columns, exclude)
        except BoundDeviationError as deviation:
            # Answers that were given before passed the same audits, but would have the same flaw.
            if self.tally.queries or not isinstance(self._backend, FallbackBackend):
                raise
            self._backend.give_up(str(deviation))
            return self._answer(queries, columns, exclude)

    def _answer(self, queries: VectorSet, columns: int, exclude: Rows) -> TopK:
        threads = self._threads(len(queries))
        size = self._block_size(len(queries), threads)
        blocks = [slice(start, start + size) for start in range(0, len(queries), size)]
        parts = in_threads(lambda block: self._block(queries.part(block), columns, exclude[block]), blocks, threads)
        for _, tally in parts:
            self.tally.add(tally)
        return stacked(part for part, _ in parts)

    def _threads(self, count: int) -> int:
        """The threads for so many queries: one for each core if the backend leaves these to us, and two if it has the
        GPU compute."""
        if self._backend.concurrent:
            return max(1, min(cores(), count // _FEWEST))
        return 2 if isinstance(self._backend, FallbackBackend) and count >= _OVERLAPPED else 1

    def _block_size(self, count: int, threads: int) -> int:
        """The size of equal blocks of so many queries, the same number of them for each thread."""
        most = _OF_THREAD if self._backend.concurrent and threads > 1 else _LARGEST
        return -(-count // (threads * -(-count // (threads * most))))

    def _block(self, queries: VectorSet, k: int, exclude: Rows) -> tuple[TopK, QueryTally]:
        """The answer to the queries of a block."""
        found = empty(len(queries), k)
        tally = QueryTally(queries=len(queries))
        open_: Rows = np.arange(len(queries))
        for turn in range(ROUNDS):
            extra = EXTRA * WIDEN**turn
            if not len(open_) or (turn and 4 * (k + extra) > len(self._library)):
                break
            count = min(k + extra + 1, len(self._library))  # one more, since one row may be excluded
            some = queries if len(open_) == len(queries) else queries.part(open_)
            part, settled = self._certified.nearest(some, k, exclude[open_], count)
            found.distances[open_], found.rows[open_] = part.distances, part.rows
            if turn:
                tally.widened = len(open_)
            open_ = open_[~settled]
        if len(open_):
            part = compare_with_all(queries.part(open_), self._library, k, exclude[open_])
            found.distances[open_], found.rows[open_] = part.distances, part.rows
        tally.exhaustive = len(open_)
        return found, tally


def compare_with_all(queries: VectorSet, library: VectorSet, k: int, exclude: Rows) -> TopK:
    """The k nearest rows of each query, at least one, without candidates. exclude: int64 (n,), a row to leave out, or
    NONE."""
    blocks = [slice(start, start + _AT_ONCE) for start in range(0, len(queries), _AT_ONCE)]
    return stacked(_compare(queries.part(some), library, k, exclude[some]) for some in blocks)


def _compare(queries: VectorSet, library: VectorSet, k: int, exclude: Rows) -> TopK:
    found = empty(len(queries), k)
    mine = queries.directions(slice(None))
    lengths = np.einsum("ij,ij->i", mine, mine)
    step = max(1, _BLOCK_BYTES // (8 * library.dimension))
    for start in range(0, len(library), step):
        block = slice(start, min(start + step, len(library)))
        squares = lower_squares(mine, lengths, library.directions(block))
        inside = (exclude >= block.start) & (exclude < block.stop)
        squares[np.flatnonzero(inside), exclude[inside] - block.start] = np.inf
        # The block's own k nearest go first: after them, hardly any others are in doubt.
        likely = np.zeros(squares.shape, dtype=bool)
        nearest = np.argpartition(squares, min(k, squares.shape[1]) - 1, axis=1)[:, :k]
        np.put_along_axis(likely, nearest, True, axis=1)
        likely &= np.isfinite(squares)
        for chosen in (likely, ~likely):
            doubtful = chosen & ~(library.at_least(squares) > found.distances[:, -1:])
            query, column = np.nonzero(doubtful & np.isfinite(squares))
            rows = column + start
            found = merge(found, query, queries.distances(query, library, rows), rows)
    return found
