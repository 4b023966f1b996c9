from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from stages.datum.contract import StageError
from stages.knn.backend import Vectors
from stages.knn.vector_set import VectorSet


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_a_vector_that_is_not_finite_names_its_picture(bad: float, metric: str) -> None:
    vectors = np.ones((3, 4), dtype=np.float32)
    vectors[1, 2] = bad
    with pytest.raises(StageError, match=r"picture bbb has numbers that are NaN or infinite"):
        VectorSet(vectors, metric, ["aaa", "bbb", "ccc"])


def test_a_vector_whose_distances_would_overflow() -> None:
    with pytest.raises(StageError, match="in row 0 is too long for float32"):
        VectorSet(np.full((1, 4), 3e38, dtype=np.float32))


@pytest.mark.parametrize("wrong", [np.ones((2, 2)), np.ones(3, np.float32), np.ones((2, 0), np.float32)])
def test_anything_but_a_float32_matrix_is_refused(wrong: NDArray[Any]) -> None:
    with pytest.raises(StageError, match="must be a float32 matrix"):
        VectorSet(wrong)


def test_distances_do_not_depend_on_what_else_is_compared() -> None:
    random = np.random.default_rng(0)
    library = VectorSet(random.normal(size=(50, 333)).astype(np.float32))
    queries = VectorSet(random.normal(size=(20, 333)).astype(np.float32))
    rows, others = random.integers(20, size=400), random.integers(50, size=400)
    together = queries.distances(rows, library, others)
    alone = [queries.distances(rows[i : i + 1], library, others[i : i + 1])[0] for i in range(400)]
    assert np.array_equal(together, alone)


def test_the_last_bit_is_that_of_the_true_distance() -> None:
    """Against exact rational arithmetic: float64 sums round to the nearest float32."""
    from fractions import Fraction  # noqa: PLC0415

    random = np.random.default_rng(4)
    a, b = (random.normal(size=(8, 40)).astype(np.float32) for _ in range(2))
    found = VectorSet(a).distances(np.arange(8), VectorSet(b), np.arange(8))
    for x, y, distance in zip(a, b, found, strict=True):
        true = sum((Fraction(float(p)) - Fraction(float(q))) ** 2 for p, q in zip(x, y, strict=True))
        below, above = (Fraction(float(np.nextafter(distance, np.float32(limit)))) for limit in (0, np.inf))
        middle = Fraction(float(distance))
        assert ((below + middle) / 2) ** 2 <= true <= ((middle + above) / 2) ** 2


def test_a_lower_bound_lies_below_where_the_distance_could_round_either_way() -> None:
    library = VectorSet(np.ones((1, 24), np.float32))
    below = np.random.default_rng(0).uniform(0.1, 10, size=100).astype(np.float32)
    above = np.nextafter(below, np.float32(np.inf))
    halfway = (below.astype(np.float64) + above) / 2
    assert np.array_equal(library.at_least(halfway**2), below)


def test_cosine_of_zero_vectors() -> None:
    points = VectorSet(np.array([[0, 0], [3, 4], [6, 8], [-3, -4]], dtype=np.float32), "cosine")
    zero, some = np.zeros(4, dtype=np.int64), np.arange(4)
    assert points.distances(zero, points, some).tolist() == [0, 1, 1, 1]
    assert points.distances(zero + 1, points, some).tolist() == [1, 0, 0, 2]


@given(st.integers(0, 2**32 - 1), st.integers(1, 3000), st.floats(-18, 18))
def test_norm_bounds_bound_the_norm(seed: int, dimension: int, scale: float) -> None:
    vectors = (np.random.default_rng(seed).normal(size=(3, dimension)) * 10**scale).astype(np.float32)
    norms = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1))
    norm_bounds = VectorSet(vectors).norm_bounds
    assert (norm_bounds >= norms).all()
    assert (norm_bounds <= norms * 1.001 + 1e-17).all()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_vectors_that_were_checked_before_are_the_same_and_read_when_needed(metric: str, family: Vectors) -> None:
    first, later = VectorSet(family, metric), VectorSet(family, metric, checked=True)
    rows = np.arange(len(family) - 1)
    part = later.part(slice(0, 40))
    assert np.array_equal(later.distances(rows, later, rows + 1), first.distances(rows, first, rows + 1))
    assert np.array_equal(part.distances(rows[:40], later, rows[:40]), first.distances(rows[:40], first, rows[:40]))
    assert np.array_equal(later.prepared, first.prepared)
    assert np.array_equal(later.norm_bounds, first.norm_bounds)
    assert np.array_equal(part.prepared, first.prepared[:40])
    bad = family.copy()
    bad[3, 1] = np.nan
    unread = VectorSet(bad, metric, checked=True)
    assert np.isfinite(unread.distances(np.array([0]), unread, np.array([1]))).all()
    with pytest.raises(StageError, match="NaN or infinite"):
        _ = unread.norm_bounds
