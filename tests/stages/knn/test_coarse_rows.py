"""The search by rows in 8 bits, beside brute force in float64."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from stages.knn.backend import Vectors
from stages.knn.coarse_rows import CoarseRows, nearest, rounded
from stages.knn.top_k import NONE
from stages.knn.vector_set import VectorSet
from tests.example_counts import examples
from tests.stages.knn.oracle import brute

METRICS = ["euclidean", "cosine"]
Mask = NDArray[np.bool_]


class Library:
    """Vectors of which only those that were fetched can be read: the others are NaN."""

    def __init__(self, vectors: Vectors, metric: str) -> None:
        self.read = np.zeros(len(vectors), np.bool_)
        self._vectors = vectors
        self._metric = metric

    def fetch(self, rows: NDArray[np.int64]) -> VectorSet:
        self.read[rows] = True
        known = np.where(self.read[:, None], self._vectors, np.float32(np.nan))
        return VectorSet(known, self._metric, checked=True)


def check(
    queries: Vectors,
    vectors: Vectors,
    k: int,
    metric: str,
    out: NDArray[np.int64] | None = None,
    within: Mask | None = None,
) -> int:
    """Compares the answer with that of brute force; returns how many rows were read for it."""
    out = np.full(len(queries), NONE, np.int64) if out is None else out
    library, coarse = Library(vectors, metric), CoarseRows(rounded(vectors))
    assert coarse.usable
    assert len(coarse) == len(vectors)
    found = nearest(coarse, VectorSet(queries, metric), k, out, library.fetch, within)
    kept = np.arange(len(vectors)) if within is None else np.flatnonzero(within)
    places = {row: place for place, row in enumerate(kept.tolist())}
    exclude = np.array([places.get(row, -1) for row in out.tolist()], np.int64)
    distances, near = brute(queries, vectors[kept], min(k, len(kept)), metric, exclude)
    rows = np.where(np.isinf(distances), NONE, kept[near]) if len(kept) else near
    assert np.array_equal(found.distances, distances)
    assert np.array_equal(found.rows, rows)
    return int(library.read.sum())


@pytest.mark.parametrize("metric", METRICS)
def test_equals_float64_brute_force_on_hard_families(family: Vectors, metric: str) -> None:
    random = np.random.default_rng(3)
    queries = np.concatenate([family[:8], family[-8:], family[random.permutation(len(family))[:8]]])
    queries[::3] += (np.abs(queries[::3]) * 1e-6 * random.normal(size=queries[::3].shape)).astype(np.float32)
    check(queries, family, 7, metric)
    own = random.integers(len(family), size=len(queries))
    for share in (0.3, 0.01, 0):
        check(queries, family, 7, metric, own, random.random(len(family)) < share)


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32 - 1), st.integers(1, 90), st.integers(1, 20), st.integers(1, 100), st.sampled_from(METRICS))
def test_equals_float64_brute_force(seed: int, count: int, dimension: int, k: int, metric: str) -> None:
    """Of random numbers and of small integers, in which many distances are equal; k may be larger than the library."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(count, dimension)) * 10.0 ** random.integers(-30, 30)
    if seed % 2:
        vectors = random.integers(-2, 3, size=(count, dimension)).astype(np.float64)
    library = vectors.astype(np.float32)
    queries = np.concatenate([library[random.integers(count, size=2)], library[:1][:, ::-1] / 2])
    check(queries, library, k, metric, np.array([NONE, int(random.integers(count)), NONE]))
    check(queries, library, k, metric, None, random.random(count) < 0.5)


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.floats(-44, 37), st.sampled_from(METRICS))
def test_no_bound_exceeds_the_distance(seed: int, dimension: int, scale: float, metric: str) -> None:
    random = np.random.default_rng(seed)
    vectors = (random.normal(size=(40, dimension)) * 10**scale + random.integers(3) * 10**scale).astype(np.float32)
    points = VectorSet(vectors, metric)
    pairs = np.divmod(np.arange(1600), 40)
    true = points.distances(pairs[0], points, pairs[1])
    assert (CoarseRows(rounded(vectors)).lower_bounds(points).ravel() <= true).all()


@pytest.mark.parametrize("metric", METRICS)
def test_few_vectors_are_read(metric: str) -> None:
    random = np.random.default_rng(0)
    vectors = np.maximum(random.normal(size=(3000, 256)), 0).astype(np.float32)
    assert check(vectors[[7]] + np.float32(0.01), vectors, 3, metric) < 60


def test_a_row_depends_on_its_vector_alone() -> None:
    vectors = np.random.default_rng(0).normal(size=(2000, 9)).astype(np.float32)
    whole = rounded(vectors)
    assert whole[1023:1030].tobytes() == b"".join(rounded(vectors[[row]]).tobytes() for row in range(1023, 1030))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2e38])
def test_vectors_without_distances_are_told(bad: float) -> None:
    vectors = np.ones((5, 3), np.float32)
    vectors[3, 1] = bad
    assert not CoarseRows(rounded(vectors)).usable
    assert CoarseRows(rounded(vectors[:3])).usable
