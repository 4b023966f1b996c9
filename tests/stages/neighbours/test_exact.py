import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stages.neighbours.exact import EXTRA, Exact
from stages.neighbours.exhaustive import compare_with_all
from stages.neighbours.faiss import Faiss
from stages.neighbours.found import NONE, merge, nothing
from stages.neighbours.points import Points
from stages.neighbours.product import Product
from stages.neighbours.sklearn import Sklearn

BACKENDS = [Product, Faiss, Sklearn]
METRICS = ["euclidean", "cosine"]


def search(backend, library, queries, k, metric="euclidean", exclude=None):
    points = Points(library, metric)
    return Exact(points, backend(points.prepared)).search(Points(queries, metric), k, exclude)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_equals_float64_brute_force_on_hard_families(family, backend, metric, oracle) -> None:
    random = np.random.default_rng(3)
    queries = np.concatenate([family[:60], family[-60:], family[random.permutation(len(family))[:60]]])
    queries[::3] += (np.abs(queries[::3]) * 1e-6 * random.normal(size=queries[::3].shape)).astype(np.float32)

    found = search(backend, family, queries, 7, metric)

    distances, rows = oracle(queries, family, 7, metric)
    assert np.array_equal(found.rows, rows)
    assert np.array_equal(found.distances, distances)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_nearest_others_of_every_vector(family, backend, oracle) -> None:
    itself = np.arange(len(family))
    found = search(backend, family, family, 3, exclude=itself)
    distances, rows = oracle(family, family, 3, exclude=itself)
    assert np.array_equal(found.rows, rows)
    assert np.array_equal(found.distances, distances)
    assert not (found.rows == itself[:, None]).any()


def test_the_backends_own_order_is_wrong_where_ours_is_right(oracle) -> None:
    """The reason for all of this; if it ever fails, the families have become too easy."""
    random = np.random.default_rng(5)
    library = (1 + 1e-5 * random.normal(size=(300, 256))).astype(np.float32)
    _distances, proposed = Faiss(library).candidates(library, 3)
    _distances, rows = oracle(library, library, 3)
    assert (proposed != rows).any(axis=1).mean() > 0.5
    assert np.array_equal(search(Faiss, library, library, 3).rows, rows)


@pytest.mark.parametrize("backend", [Product, Faiss])
@pytest.mark.parametrize("rows", [1, 2, 5, EXTRA, EXTRA + 4, 2 * EXTRA])
@pytest.mark.parametrize("k", [1, 3, 40])
def test_small_libraries_give_fewer_neighbours(rows, k, backend, oracle) -> None:
    library = np.random.default_rng(rows).normal(size=(rows, 5)).astype(np.float32)
    found = search(backend, library, library, k)
    assert found.rows.shape == (rows, min(k, rows))
    assert np.array_equal(found.rows, oracle(library, library, k)[1])
    others = search(backend, library, library, k, exclude=np.arange(rows))
    assert others.rows.shape == (rows, min(k, rows - 1))


def test_excluding_for_some_queries_only(oracle) -> None:
    library = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    exclude = np.array([NONE, 1, NONE, 3])
    found = search(Faiss, library, library, 4, exclude=exclude)
    assert found.rows.shape == (4, 4)
    assert found.rows[0, 0] == 0
    assert found.rows[1, 3] == NONE
    assert np.isinf(found.distances[1, 3])
    assert set(found.rows[1, :3]) == {0, 2, 3}


def test_no_queries() -> None:
    library = np.ones((3, 2), dtype=np.float32)
    assert search(Faiss, library, np.empty((0, 2), np.float32), 2).rows.shape == (0, 2)


def test_queries_of_another_kind_are_refused() -> None:
    library = Points(np.ones((3, 2), dtype=np.float32))
    exact = Exact(library, Faiss(library.prepared))
    for wrong in (Points(np.ones((1, 3), np.float32)), Points(np.ones((1, 2), np.float32), "cosine")):
        with pytest.raises(ValueError, match="cannot be compared"):
            exact.search(wrong, 1)


def test_each_stage_of_the_certificate_is_reached() -> None:
    """Settled at once, settled after widening, compared with all: as few queries go on as must."""
    random = np.random.default_rng(1)
    easy = random.normal(size=(2000, 32)).astype(np.float32)
    twins = np.repeat(easy[:1], 100, axis=0)
    crowd = np.repeat(easy[1:2], 1000, axis=0)
    library = Points(np.concatenate([easy, twins, crowd]))
    for queries, expected in ((easy[50:60], (0, 0)), (twins[:10], (10, 0)), (crowd[:10], (10, 10))):
        exact = Exact(library, Faiss(library.prepared))
        exact.search(Points(queries), 3)
        assert (exact.tally.widened, exact.tally.exhaustive) == expected
        assert exact.tally.queries == 10


def test_many_queries_cross_the_blocks(monkeypatch, oracle) -> None:
    from stages.neighbours import exact, exhaustive, points, product, threads  # noqa: PLC0415  (to change their sizes)

    random = np.random.default_rng(2)
    library = random.integers(0, 3, size=(700, 8)).astype(np.float32)  # ties everywhere
    queries = random.integers(0, 3, size=(150, 8)).astype(np.float32)
    monkeypatch.setattr(exact, "QUERY_BLOCK", 64)
    monkeypatch.setattr(exact, "_FEWEST", 10)
    monkeypatch.setattr(exact, "cores", lambda: 3)
    monkeypatch.setattr(threads, "cores", lambda: 3)
    monkeypatch.setattr(product, "_COLUMNS", 300)
    monkeypatch.setattr(product, "_TILE_BYTES", 4 * 300 * 20)
    monkeypatch.setattr(product, "_CHUNK_BYTES", 4 * 304 * 3)
    monkeypatch.setattr(product, "_GROUPS", 2)
    monkeypatch.setattr(exhaustive, "_QUERIES", 7)
    monkeypatch.setattr(exhaustive, "_BLOCK_BYTES", 64 * 50)
    monkeypatch.setattr(points, "_BLOCK_BYTES", 64 * 9)
    monkeypatch.setattr(points, "_SCAN_BYTES", 32 * 13)
    for metric in METRICS:
        distances, rows = oracle(queries, library, 9, metric)
        for found in (
            search(Product, library, queries, 9, metric),
            search(Faiss, library, queries, 9, metric),
            compare_with_all(Points(queries, metric), Points(library, metric), 9, np.full(150, NONE)),
        ):
            assert np.array_equal(found.rows, rows)
            assert np.array_equal(found.distances, distances)


numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100),
    st.sampled_from([0.0, 1.0, 1 + 2.0**-23, 1e-45, 1e19, 1e30]).map(np.float32),
)


@given(draw=st.data(), dimension=st.integers(1, 6), metric=st.sampled_from(METRICS), backend=st.sampled_from(BACKENDS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_vectors_at_all(oracle, draw, dimension, metric, backend) -> None:
    vectors = draw.draw(arrays.arrays(np.float32, st.tuples(st.integers(1, 60), st.just(dimension)), elements=numbers))
    k = draw.draw(st.integers(1, 5))
    found = search(backend, vectors, vectors, k, metric)
    distances, rows = oracle(vectors, vectors, k, metric)
    assert np.array_equal(found.distances, distances)
    assert np.array_equal(found.rows, rows)


@given(st.data())
@settings(deadline=None)
def test_segments_merged_equal_the_whole(draw) -> None:
    random = np.random.default_rng(draw.draw(st.integers(0, 2**32 - 1)))
    library = random.integers(0, 4, size=(draw.draw(st.integers(2, 80)), 4)).astype(np.float32)
    queries = random.integers(0, 4, size=(5, 4)).astype(np.float32)
    cut = draw.draw(st.integers(1, len(library) - 1))
    whole = search(Faiss, library, queries, 4)
    merged = nothing(5, whole.rows.shape[1])
    for start, stop in ((0, cut), (cut, len(library))):
        part = search(Faiss, library[start:stop], queries, 4)
        query, column = np.nonzero(part.rows != NONE)
        merged = merge(merged, query, part.distances[query, column], part.rows[query, column] + start)
    assert np.array_equal(merged.rows, whole.rows)
    assert np.array_equal(merged.distances, whole.distances)
