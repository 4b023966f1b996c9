"""Owns the exact search: who is asked for candidates, how many of them, and by how many threads.

A backend's float32 expansion |q|² + |x|² - 2 q·x cannot tell near-duplicates apart, so its order is never trusted. It
is asked for k + m candidates; a query is settled only if they are proven to hold its k nearest (`Certified`). Otherwise
m grows eightfold; what is still open is compared with all rows. Many queries are shown to a quicker and less precise
backend before. Answers therefore do not depend on backends, threads or versions. Knows no files and no pictures.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from stages.neighbours.backend import Backend, Probe, Rows
from stages.neighbours.certified import Certified
from stages.neighbours.exhaustive import compare_with_all
from stages.neighbours.threads import cores, in_threads
from stages.neighbours.topk import NONE, TopK, empty
from stages.neighbours.vectorset import VectorSet

EXTRA = 28
"""m: candidates beyond k. FAISS selects 32 of a row as fast as 8, and only doubtful ones cost a true comparison."""

WIDEN = 8
"""The factor by which m grows for queries that are not settled."""

ROUNDS = 2
"""How often a backend is asked before the rest is compared with all: a third time would cost as much as that."""


@dataclass(frozen=True)
class Batching:
    """Numbers of queries, which change the time and the memory of a search and never its answer.

    many: queries from which it pays to prepare the quick backend. probed: queries that tell whether it pays for vectors
    such as these. largest: the most handled at once, FAISS's own block, so that nothing is multiplied in smaller pieces
    than it would be. fewest: queries that are worth a thread. of_thread: queries that a thread handles at once: as fast
    to multiply, and several turns of each thread. threads: None for one on each core.
    """

    many: int = 2000
    probed: int = 32
    largest: int = 4096
    fewest: int = 64
    of_thread: int = 1280
    threads: int | None = None


BATCHING = Batching()


@dataclass
class Tally:
    """How the queries so far were settled: how many there were, were settled by the quick backend, were widened, and
    were compared with all rows."""

    queries: int = 0
    quick: int = 0
    widened: int = 0
    exhaustive: int = 0

    def add(self, other: "Tally") -> None:
        """Counts those of another tally too."""
        self.queries += other.queries
        self.quick += other.quick
        self.widened += other.widened
        self.exhaustive += other.exhaustive


class Exact:
    """The exact searcher: see the module. One search at a time. `tally` counts, for logs and measurements."""

    def __init__(
        self,
        library: VectorSet,
        backend: Backend,
        quick: Callable[[Probe], Backend | None] | None = None,
        batching: Batching = BATCHING,
    ) -> None:
        """library: at least one point; the backend was built from `library.prepared`, and `quick` builds one of it, or
        None where that does not work or would not pay for such queries."""
        self._library = library
        self._certified = Certified(library, backend)
        self._concurrent = backend.concurrent
        self._make_quick = quick
        self._batching = batching
        self._quick: Certified | None = None
        self.tally = Tally()

    def search(self, queries: VectorSet, k: int, exclude: Rows | None = None) -> TopK:
        """The k nearest rows, exactly: see `Searcher`."""
        queries.must_match(self._library)
        if exclude is None:
            exclude = np.full(len(queries), NONE, dtype=np.int64)
        columns = max(0, min(k, len(self._library) - int(bool(len(exclude)) and bool((exclude != NONE).all()))))
        found = empty(len(queries), columns)
        if not columns or not len(queries):
            return found
        many = len(queries) >= self._batching.many
        if many and self._make_quick is not None:
            made, self._make_quick = self._make_quick(self._probe(queries, columns, exclude)), None
            self._quick = None if made is None else Certified(self._library, made)
        blocks = self._blocks(len(queries))
        work = partial(self._block, queries, columns, exclude)
        parts = in_threads(work, blocks, self._batching.threads)
        for block, (part, tally) in zip(blocks, parts, strict=True):
            found.distances[block], found.rows[block] = part.distances, part.rows
            self.tally.add(tally)
        if many and 2 * sum(tally.quick for _part, tally in parts) < len(queries):
            self._quick = None  # these vectors are not for it
        return found

    def _probe(self, queries: VectorSet, k: int, exclude: Rows) -> Probe:
        """The first queries, and how far their k-th neighbours and last candidates are."""
        some = queries.part(slice(0, self._batching.probed))
        count = min(k + EXTRA, len(self._library) - 1) or 1
        found, _ = self._certified.nearest(
            some, count, exclude[: self._batching.probed], min(count + 1, len(self._library))
        )
        squares = queries.squares(found.distances)
        return Probe(some.prepared, squares[:, min(k, count) - 1], squares[:, -1])

    def _blocks(self, count: int) -> list[slice]:
        """Equal parts of so many queries, as many for each core, where the backend leaves it to us to use them."""
        sizes = self._batching
        threads = max(1, min(sizes.threads or cores(), count // sizes.fewest)) if self._concurrent else 1
        parts = threads * -(-count // (threads * (sizes.largest if threads == 1 else sizes.of_thread)))
        size = -(-count // parts)
        return [slice(start, start + size) for start in range(0, count, size)]

    def _block(self, all_queries: VectorSet, k: int, all_excluded: Rows, block: slice) -> tuple[TopK, Tally]:
        queries, exclude = all_queries.part(block), all_excluded[block]
        found = empty(len(queries), k)
        tally = Tally(queries=len(queries))
        open_: Rows = np.arange(len(queries))
        for asked, extra in self._turns(k):
            if not len(open_):
                break
            count = min(k + extra + 1, len(self._library))  # one more, for the row that may be excluded
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

    def _turns(self, k: int) -> Iterator[tuple[Certified, int]]:
        """Who is asked one after the other, and for how many candidates beyond k."""
        if self._quick is not None:
            yield self._quick, EXTRA
        for turn in range(ROUNDS):
            extra = EXTRA * WIDEN**turn
            if turn and 4 * (k + extra) > len(self._library):
                return
            yield self._certified, extra
