"""The quick look of a process: what its libraries share, and when it is tried."""

import gc
from types import SimpleNamespace
from typing import Any

import numpy as np

from stages.knn import quantised_copy
from stages.knn.backend import BackendProbe, Vectors
from stages.knn.exact_searcher import BatchSizes, ExactSearcher
from stages.knn.numpy_backend import NumpyBackend
from stages.knn.quick_look import QuickLook, SharedCentre
from stages.knn.vector_set import VectorSet
from tests.stages.knn.oracle import brute


def vectors(count: int) -> Vectors:
    """Like those of a pooling network, in few directions."""
    random = np.random.default_rng(0)
    found: Vectors = np.maximum(random.normal(size=(count, 16)) @ random.normal(size=(16, 200)), 0).astype(np.float32)
    return found


class Counting:
    """The module stages.knn.quantised_copy, which counts the probes and the queries that it quantises."""

    def __init__(self) -> None:
        self.tried = 0
        self.asked = 0
        outer = self

        class Quantised(quantised_copy.QuantisedCopy):
            def ask(self, queries: Vectors) -> Any:
                outer.asked += len(queries)
                return super().ask(queries)

        self.module: Any = SimpleNamespace(
            QuantisedCopy=Quantised,
            TILING=quantised_copy.TILING,
            centre_of=quantised_copy.centre_of,
            settled=self.settled,
        )

    def settled(self, library: Vectors, probe: BackendProbe, centre: Vectors) -> float:
        self.tried += 1
        return quantised_copy.settled(library, probe, centre)


def search(counting: Counting, shared: SharedCentre, library: Vectors, queries: VectorSet) -> ExactSearcher:
    points = VectorSet(library)
    look = QuickLook(library, lambda: counting.module, shared, print)
    searcher = ExactSearcher(
        points, NumpyBackend(library), look, BatchSizes(many=10, fewest=10, of_thread=40, threads=2)
    )
    found = searcher.search(queries, 3)
    distances, rows = brute(queries.vectors, library, 3)
    assert np.array_equal(found.rows, rows)
    assert np.array_equal(found.distances, distances)
    return searcher


def test_segments_of_one_library_quantise_the_queries_once_and_are_probed_once() -> None:
    every, shared, counting = vectors(2700), SharedCentre(), Counting()
    queries = VectorSet(every[2600:])
    for start in (0, 1300):
        searcher = search(counting, shared, every[start : start + 1300], queries)
        assert searcher.tally.quick > 90
    assert (counting.tried, counting.asked) == (1, 100)
    others = VectorSet(every[2550:2650])
    search(counting, shared, every[:1300], others)
    assert (counting.tried, counting.asked) == (2, 200)


def test_a_library_that_lies_elsewhere_has_a_centre_of_its_own() -> None:
    every, shared, counting = vectors(700), SharedCentre(), Counting()
    queries = VectorSet(every[600:])
    search(counting, shared, every[:600], queries)
    centre = shared.centre
    search(counting, shared, every[:600] + np.float32(40), queries)
    assert shared.centre is not centre
    assert counting.tried == 2


def test_queries_that_were_not_settled_after_all_are_probed_again() -> None:
    every, shared, counting = vectors(700), SharedCentre(), Counting()
    look = QuickLook(every[:600], lambda: counting.module, shared, print)
    queries = VectorSet(every[600:])
    search(counting, shared, every[:600], queries)
    assert look.suits(0.5)
    assert not look.suits(0.4)
    search(counting, shared, every[:600], queries)
    assert counting.tried == 2


def test_nothing_is_held_of_queries_that_are_gone() -> None:
    every, shared, counting = vectors(700), SharedCentre(), Counting()
    queries = VectorSet(every[600:])
    search(counting, shared, every[:600], queries)
    assert shared.pays_for is not None
    assert shared.pays_for() is queries
    del queries
    gc.collect()
    assert shared.pays_for() is None
