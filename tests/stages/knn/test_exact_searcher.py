from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from stages.knn import exact_searcher, numpy_backend, top_k, vector_set
from stages.knn.backend import Backend, Vectors
from stages.knn.exact_searcher import EXTRA, ExactSearcher, compare_with_all
from stages.knn.faiss_backend import FaissBackend
from stages.knn.numpy_backend import NumpyBackend
from stages.knn.sklearn_backend import SklearnBackend
from stages.knn.top_k import NONE, TopK, empty, merge
from stages.knn.vector_set import VectorSet
from tests.stages.knn.oracle import brute

MakeBackend = Callable[[Vectors], Backend]

BACKENDS: list[MakeBackend] = [NumpyBackend, FaissBackend, SklearnBackend]
METRICS = ["euclidean", "cosine"]


def search(
    backend: MakeBackend,
    library: Vectors,
    queries: Vectors,
    k: int,
    metric: str = "euclidean",
    exclude: NDArray[np.int64] | None = None,
) -> TopK:
    points = VectorSet(library, metric)
    return ExactSearcher(points, backend(points.prepared)).search(VectorSet(queries, metric), k, exclude)


@pytest.mark.parametrize("metric", METRICS)
def test_equals_float64_brute_force_on_hard_families(family: Vectors, metric: str) -> None:
    random = np.random.default_rng(3)
    queries = np.concatenate([family[:60], family[-60:], family[random.permutation(len(family))[:60]]])
    queries[::3] += (np.abs(queries[::3]) * 1e-6 * random.normal(size=queries[::3].shape)).astype(np.float32)

    distances, rows = brute(queries, family, 7, metric)
    for backend in BACKENDS:
        found = search(backend, family, queries, 7, metric)
        assert np.array_equal(found.rows, rows), backend
        assert np.array_equal(found.distances, distances), backend


def test_the_nearest_others_of_every_vector(family: Vectors) -> None:
    itself = np.arange(len(family))
    distances, rows = brute(family, family, 3, exclude=itself)
    assert not (rows == itself[:, None]).any()
    for backend in BACKENDS:
        found = search(backend, family, family, 3, exclude=itself)
        assert np.array_equal(found.rows, rows), backend
        assert np.array_equal(found.distances, distances), backend


def test_the_backends_own_order_is_wrong_where_ours_is_right() -> None:
    """The reason for the proof; if this ever fails, the families have become too easy."""
    random = np.random.default_rng(5)
    library = (1 + 1e-5 * random.normal(size=(300, 256))).astype(np.float32)
    _distances, proposed = FaissBackend(library).candidates(library, 3)
    _distances, rows = brute(library, library, 3)
    assert (proposed != rows).any(axis=1).mean() > 0.5
    assert np.array_equal(search(FaissBackend, library, library, 3).rows, rows)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_vector_whose_square_overflows_hides_no_other(backend: MakeBackend) -> None:
    random = np.random.default_rng(0)
    library = (random.normal(size=(2000, 24)) * 1e10).astype(np.float32)
    library[[777, 778]] *= np.float32(1e20)
    queries = library[700:900]
    found = search(backend, library, queries, 1)
    assert np.array_equal(found.rows, brute(queries, library, 1)[1])


@pytest.mark.parametrize("backend", [NumpyBackend, FaissBackend])
@pytest.mark.parametrize("rows", [1, 2, 5, EXTRA, EXTRA + 4, 2 * EXTRA])
@pytest.mark.parametrize("k", [1, 3, 40])
def test_small_libraries_give_fewer_neighbours(rows: int, k: int, backend: MakeBackend) -> None:
    library = np.random.default_rng(rows).normal(size=(rows, 5)).astype(np.float32)
    found = search(backend, library, library, k)
    assert found.rows.shape == (rows, min(k, rows))
    assert np.array_equal(found.rows, brute(library, library, k)[1])
    others = search(backend, library, library, k, exclude=np.arange(rows))
    assert others.rows.shape == (rows, min(k, rows - 1))


def test_excluding_for_some_queries_only() -> None:
    library = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    exclude = np.array([NONE, 1, NONE, 3])
    found = search(FaissBackend, library, library, 4, exclude=exclude)
    assert found.rows.shape == (4, 4)
    assert found.rows[0, 0] == 0
    assert found.rows[1, 3] == NONE
    assert np.isinf(found.distances[1, 3])
    assert set(found.rows[1, :3]) == {0, 2, 3}


def test_no_queries() -> None:
    library = np.ones((3, 2), dtype=np.float32)
    assert search(FaissBackend, library, np.empty((0, 2), np.float32), 2).rows.shape == (0, 2)


def test_queries_of_another_metric_or_dimension_are_refused() -> None:
    library = VectorSet(np.ones((3, 2), dtype=np.float32))
    exact = ExactSearcher(library, FaissBackend(library.prepared))
    for wrong in (VectorSet(np.ones((1, 3), np.float32)), VectorSet(np.ones((1, 2), np.float32), "cosine")):
        with pytest.raises(ValueError, match="cannot be compared"):
            exact.search(wrong, 1)


def test_each_stage_of_the_proof_is_reached() -> None:
    """Settled at once, settled with more candidates, compared with all rows: only the queries that need it continue."""
    random = np.random.default_rng(1)
    easy = random.normal(size=(2000, 32)).astype(np.float32)
    twins = np.repeat(easy[:1], 100, axis=0)
    crowd = np.repeat(easy[1:2], 1000, axis=0)
    library = VectorSet(np.concatenate([easy, twins, crowd]))
    for queries, expected in ((easy[50:60], (0, 0)), (twins[:10], (10, 0)), (crowd[:10], (10, 10))):
        exact = ExactSearcher(library, FaissBackend(library.prepared))
        exact.search(VectorSet(queries), 3)
        assert (exact.tally.widened, exact.tally.exhaustive) == expected
        assert exact.tally.queries == 10


def test_many_queries_cross_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    patched: dict[ModuleType, dict[str, Any]] = {
        vector_set: {"_DIFFERENCES": 64 * 9, "_SCAN": 32 * 13},
        exact_searcher: {"_LARGEST": 64, "_FEWEST": 10, "_AT_ONCE": 7, "_BLOCK_BYTES": 64 * 50, "cores": lambda: 3},
        numpy_backend: {"_COLUMNS": 300, "_TILE_BYTES": 4 * 300 * 20, "_CHUNK_BYTES": 4 * 304 * 3},
        top_k: {"_GROUPS": 2, "_MULTIPLE": 4},
    }
    for module, sizes in patched.items():
        for name, value in sizes.items():
            monkeypatch.setattr(module, name, value)
    random = np.random.default_rng(2)
    library = random.integers(0, 3, size=(700, 8)).astype(np.float32)  # ties everywhere
    queries = random.integers(0, 3, size=(150, 8)).astype(np.float32)
    for metric in METRICS:
        distances, rows = brute(queries, library, 9, metric)
        held, asked = VectorSet(library, metric), VectorSet(queries, metric)
        for found in (
            ExactSearcher(held, NumpyBackend(held.prepared)).search(asked, 9),
            ExactSearcher(held, FaissBackend(held.prepared)).search(asked, 9),
            compare_with_all(asked, held, 9, np.full(150, NONE)),
        ):
            assert np.array_equal(found.rows, rows)
            assert np.array_equal(found.distances, distances)


numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100),
    st.sampled_from([0.0, 1.0, 1 + 2.0**-23, 1e-45, 1e19, 1e30]).map(np.float32),
)


@given(draw=st.data(), dimension=st.integers(1, 6), metric=st.sampled_from(METRICS), backend=st.sampled_from(BACKENDS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_vectors_at_all(draw: st.DataObject, dimension: int, metric: str, backend: MakeBackend) -> None:
    vectors = draw.draw(arrays.arrays(np.float32, st.tuples(st.integers(1, 60), st.just(dimension)), elements=numbers))
    k = draw.draw(st.integers(1, 5))
    found = search(backend, vectors, vectors, k, metric)
    distances, rows = brute(vectors, vectors, k, metric)
    assert np.array_equal(found.distances, distances)
    assert np.array_equal(found.rows, rows)


@given(st.data())
@settings(deadline=None)
def test_segments_merged_equal_the_whole(draw: st.DataObject) -> None:
    random = np.random.default_rng(draw.draw(st.integers(0, 2**32 - 1)))
    library = random.integers(0, 4, size=(draw.draw(st.integers(2, 80)), 4)).astype(np.float32)
    queries = random.integers(0, 4, size=(5, 4)).astype(np.float32)
    cut = draw.draw(st.integers(1, len(library) - 1))
    whole = search(FaissBackend, library, queries, 4)
    merged = empty(5, whole.rows.shape[1])
    for start, stop in ((0, cut), (cut, len(library))):
        part = search(FaissBackend, library[start:stop], queries, 4)
        query, column = np.nonzero(part.rows != NONE)
        merged = merge(merged, query, part.distances[query, column], part.rows[query, column] + start)
    assert np.array_equal(merged.rows, whole.rows)
    assert np.array_equal(merged.distances, whole.distances)
