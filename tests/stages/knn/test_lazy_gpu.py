"""A GPU is used once its start pays, and answers do not tell when."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from stages.knn.lazy_gpu import ProductAccount, import_price
from stages.knn.search_settings import SearchSettings
from stages.knn.searcher_factory import SearchMachine, open_searcher
from stages.knn.vector_set import VectorSet
from tests.stages.knn import imitations
from tests.stages.knn.oracle import brute

VECTORS = np.random.default_rng(1).normal(size=(300, 16)).astype(np.float32)
LIBRARY = VectorSet(VECTORS)
ONE = len(VECTORS) * 16
"""The products of one query."""

pytestmark = pytest.mark.usefixtures("gpu")


def machine(account: ProductAccount, loaded: list[str]) -> SearchMachine:
    return imitations.machine(imitations.plain, account, loading=loaded.append)


def test_few_queries_do_not_import_cuml() -> None:
    loaded: list[str] = []
    account = ProductAccount(speed=0)
    found = open_searcher(LIBRARY, SearchSettings(), {}, machine=machine(account, loaded)).search(LIBRARY, 5)
    assert np.array_equal(found.rows, brute(VECTORS, VECTORS, 5)[1])
    assert set(loaded) == {"numpy_backend"}
    assert (account.spent, account.price) == (300 * ONE, import_price())


def test_many_queries_import_cuml_before_the_first_is_answered() -> None:
    loaded: list[str] = []
    account = ProductAccount(300 * ONE, speed=0)
    found = open_searcher(LIBRARY, SearchSettings(), {}, machine=machine(account, loaded)).search(LIBRARY, 5)
    assert np.array_equal(found.rows, brute(VECTORS, VECTORS, 5)[1])
    assert "cuml_backend" in loaded
    assert account.spent == 0


def test_the_searches_of_all_segments_count_and_their_answers_are_the_same() -> None:
    """Every query is searched for in two segments; the GPU begins within the third search, and is used from then on."""
    loaded: list[str] = []
    given = machine(ProductAccount(100 * ONE, speed=0), loaded)
    queries = LIBRARY.part(slice(0, 40))
    distances, rows = brute(VECTORS[:40], VECTORS, 5)
    begun = []
    segments = [open_searcher(LIBRARY, SearchSettings(), {}, machine=given) for _ in range(2)]
    for searcher in [*segments, *segments, open_searcher(LIBRARY, SearchSettings(), {}, machine=given)]:
        found = searcher.search(queries, 5)
        begun.append("cuml_backend" in loaded)
        assert np.array_equal(found.rows, rows)
        assert np.array_equal(found.distances, distances)
    assert begun == [False, False, True, True, True]


def test_a_small_library_stays_on_the_processor_after_the_import_until_it_has_earned_its_copy() -> None:
    loaded: list[str] = []
    account = ProductAccount(0, speed=2 * 300 * ONE / 0.1)  # the examination lasts two and a bit searches
    given = machine(account, loaded)
    first, second = (open_searcher(LIBRARY, SearchSettings(), {}, machine=given) for _ in range(2))
    first.search(LIBRARY, 5)
    assert account.open and "cuml_backend" in loaded
    rows = brute(VECTORS, VECTORS, 5)[1]
    begun = []
    for _ in range(4):
        loaded.clear()
        assert np.array_equal(second.search(LIBRARY, 5).rows, rows)
        begun.append("cuml_backend" in loaded)
    assert begun == [False, False, True, False]  # opened once


def test_a_gpu_that_was_asked_for_is_used_at_once() -> None:
    loaded: list[str] = []
    open_searcher(LIBRARY, SearchSettings(backend="cuml"), {}, machine=machine(ProductAccount(), loaded))
    assert set(loaded) == {"cuml_backend"}


@given(st.lists(st.floats(0, 3), max_size=40))
def test_at_most_twice_the_time_of_the_better_way(searches: list[float]) -> None:
    """The price is 1, and the GPU takes no time: the worst case for beginning on the processor."""
    account = ProductAccount(1)
    taken = sum(0.0 if account.pays(each) else each for each in searches) + account.open
    assert taken <= 2 * min(sum(searches), 1) + 1e-9
