"""The exact search: which backends it asks for candidates, for how many, and in how many threads.

A backend's float32 expansion |q|² + |x|² - 2 q·x cannot tell near-duplicates apart, so its order is never trusted. It
proposes k + m candidates, and a query is settled only if these are proven to include its k nearest rows
(`CandidateProver`). Otherwise m grows eightfold, and queries that remain open are compared with all rows. If there are
many queries, a quicker and less precise backend goes first: the quick look. So answers do not depend on backends,
threads or versions. Knows no files and no pictures.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from stages.knn.backend import Backend, BackendProbe, Rows
from stages.knn.blas_threads import cores, in_threads
from stages.knn.bound_deviation import BoundDeviationError
from stages.knn.candidate_prover import CandidateProver
from stages.knn.exhaustive_search import compare_with_all
from stages.knn.fallback_backend import FallbackBackend
from stages.knn.quick_look import QuickBackendFactory
from stages.knn.top_k import NONE, TopK, empty
from stages.knn.vector_set import VectorSet

EXTRA = 28
"""m: candidates beyond k. FAISS selects 32 of a row as fast as 8, and only the doubtful ones cost a true distance."""

WIDEN = 8
"""The factor by which m grows for queries that are not settled."""

ROUNDS = 2
"""Rounds of proposals before the open queries are compared with all rows; a third would cost as much as that."""


@dataclass(frozen=True)
class BatchSizes:
    """Numbers of queries, which change the time and the memory of a search and never its answer.

    many: the fewest queries for which it pays to prepare the quick backend. probed: the queries that are tried to learn
    whether it pays for these vectors. largest: the most queries in one block without threads, as in FAISS, so that it
    multiplies no smaller pieces than on its own. fewest: the fewest queries for a thread. of_thread: the most queries
    in one block of a thread, which multiplies as fast and gives each thread several turns. threads: None for one per
    core. overlapped: the fewest queries of which a GPU gets half at a time, so that it proposes candidates for some
    while their true distances are computed for others.
    """

    many: int = 2000
    probed: int = 32
    largest: int = 4096
    fewest: int = 64
    of_thread: int = 1280
    threads: int | None = None
    overlapped: int = 2048


BATCHING = BatchSizes()


@dataclass
class QueryTally:
    """Counts of queries: all so far, those that the quick backend settled, those that needed more candidates, and those
    that were compared with all rows."""

    queries: int = 0
    quick: int = 0
    widened: int = 0
    exhaustive: int = 0

    def add(self, other: "QueryTally") -> None:
        """Adds the counts of another tally."""
        self.queries += other.queries
        self.quick += other.quick
        self.widened += other.widened
        self.exhaustive += other.exhaustive


class ExactSearcher:
    """The exact searcher: see the module. Runs one search at a time. `tally` is for logs and measurements."""

    def __init__(
        self,
        library: VectorSet,
        backend: Backend,
        quick: QuickBackendFactory | None = None,
        batching: BatchSizes = BATCHING,
    ) -> None:
        """library: at least one vector. backend: built from `library.prepared`. quick: of the same."""
        self._library = library
        self._certified = CandidateProver(library, backend)
        self._backend = backend
        self._look = quick
        self._looked = False  # for it
        self._batching = batching
        self._quick: CandidateProver | None = None
        self.tally = QueryTally()

    def search(self, queries: VectorSet, k: int, exclude: Rows | None = None) -> TopK:
        """The k nearest rows, exactly: see `Searcher`. Raises Deviation if the backend turns out to break its bound and
        nothing can take its place."""
        queries.must_match(self._library)
        if exclude is None:
            exclude = np.full(len(queries), NONE, dtype=np.int64)
        columns = max(0, min(k, len(self._library) - int(bool(len(exclude)) and bool((exclude != NONE).all()))))
        found = empty(len(queries), columns)
        if not columns or not len(queries):
            return found
        try:
            self._answer(queries, columns, exclude, found)
        except BoundDeviationError as deviation:
            # Answers that were given before passed the same audits, but would have the same flaw.
            if self.tally.queries or not isinstance(self._backend, FallbackBackend):
                raise
            self._backend.give_up(str(deviation))
            self._answer(queries, columns, exclude, found)
        return found

    def _answer(self, queries: VectorSet, columns: int, exclude: Rows, found: TopK) -> None:
        many = len(queries) >= self._batching.many
        if many and self._look is not None and not self._looked:
            made = self._look.open(queries, partial(self._probe, queries, columns, exclude))
            self._looked, self._quick = True, None if made is None else CandidateProver(self._library, made)
        threads = self._threads(len(queries))
        size = self._block_size(len(queries), threads)
        blocks = [
            (some, exclude[number * size : (number + 1) * size]) for number, some in enumerate(queries.divided(size))
        ]
        parts = in_threads(partial(self._block, columns), blocks, threads)
        for number, (part, tally) in enumerate(parts):
            block = slice(number * size, (number + 1) * size)
            found.distances[block], found.rows[block] = part.distances, part.rows
            self.tally.add(tally)
        settled = sum(tally.quick for _part, tally in parts)
        if many and self._look is not None and self._quick is not None and not self._look.suits(settled / len(queries)):
            self._quick = None  # it does not suit these vectors

    def _probe(self, queries: VectorSet, k: int, exclude: Rows) -> BackendProbe:
        """The first queries, with the distances of their k-th neighbours and their last candidates."""
        some = queries.part(slice(0, self._batching.probed))
        count = min(k + EXTRA, len(self._library) - 1) or 1
        found, _ = self._certified.nearest(
            some, count, exclude[: self._batching.probed], min(count + 1, len(self._library))
        )
        squares = queries.squares(found.distances)
        return BackendProbe(some.prepared, squares[:, min(k, count) - 1], squares[:, -1])

    def _threads(self, count: int) -> int:
        """The threads for so many queries: one for each core if the backend leaves these to us, and two if it has the
        GPU compute."""
        sizes = self._batching
        if self._backend.concurrent:
            return max(1, min(sizes.threads or cores(), count // sizes.fewest))
        return 2 if isinstance(self._backend, FallbackBackend) and count >= sizes.overlapped else 1

    def _block_size(self, count: int, threads: int) -> int:
        """The size of equal blocks of so many queries, the same number of them for each thread."""
        sizes = self._batching
        most = sizes.of_thread if self._backend.concurrent and threads > 1 else sizes.largest
        return -(-count // (threads * -(-count // (threads * most))))

    def _block(self, k: int, block: tuple[VectorSet, Rows]) -> tuple[TopK, QueryTally]:
        """The answer to the queries of a block, each with the row that it leaves out."""
        queries, exclude = block
        found = empty(len(queries), k)
        tally = QueryTally(queries=len(queries))
        open_: Rows = np.arange(len(queries))
        for asked, extra in self._turns(k):
            if not len(open_):
                break
            count = min(k + extra + 1, len(self._library))  # one more, since one row may be excluded
            some = queries if len(open_) == len(queries) else queries.part(open_)
            part, settled = asked.nearest(some, k, exclude[open_], count)
            found.distances[open_], found.rows[open_] = part.distances, part.rows
            if asked is self._quick:
                tally.quick = int(settled.sum())
            elif extra > EXTRA:
                tally.widened = len(open_)
            open_ = open_[~settled]
        if len(open_):
            part = compare_with_all(queries.part(open_), self._library, k, exclude[open_])
            found.distances[open_], found.rows[open_] = part.distances, part.rows
        tally.exhaustive = len(open_)
        return found, tally

    def _turns(self, k: int) -> Iterator[tuple[CandidateProver, int]]:
        """The backends in the order in which they are asked, each with its number of candidates beyond k."""
        if self._quick is not None:
            yield self._quick, EXTRA
        for turn in range(ROUNDS):
            extra = EXTRA * WIDEN**turn
            if turn and 4 * (k + extra) > len(self._library):
                return
            yield self._certified, extra
