"""The quick look: bounds that hold for all vectors and are tight enough to be useful."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stages.knn.backend import BackendProbe, Vectors
from stages.knn.quantised_copy import CopyTiles, QuantisedCopy, centre_of, settled


def truth(queries: Vectors, library: Vectors) -> NDArray[np.float64]:
    """Squared distances of all pairs, float64."""
    apart = queries[:, None].astype(np.float64) - library[None].astype(np.float64)
    squares: NDArray[np.float64] = (apart**2).sum(axis=2)
    return squares


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 40),
    dimension=st.integers(1, 300),
    spread=st.integers(0, 6),
    level=st.integers(-8, 8),
    offset=st.integers(-3, 8),
)
@settings(deadline=None)
def test_every_bound_holds(seed: int, rows: int, dimension: int, spread: int, level: int, offset: int) -> None:
    """At all lengths and distances from 0, no row is nearer than its bound, proposed or not."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(rows + 5, dimension)) * 10.0 ** random.integers(0, spread + 1, size=(rows + 5, 1))
    vectors = ((vectors + 10.0**offset) * 10.0**level).astype(np.float32)
    library, queries = vectors[:rows], vectors[rows - 1 :]
    count = int(random.integers(1, rows + 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bounds, proposed = QuantisedCopy(library).candidates(queries, count)
    squares = truth(queries, library)
    for bound, row, square in zip(bounds, proposed, squares, strict=True):
        if (row == -1).all():
            assert np.isinf(bound).all()
            continue
        assert sorted(set(row)) == sorted(row)
        assert (bound <= square[row]).all()
        assert (np.delete(square, row) >= bound.max()).all()


def test_the_bounds_of_a_networks_vectors_are_close() -> None:
    random = np.random.default_rng(2)
    vectors = np.maximum(random.normal(size=(600, 24)) @ random.normal(size=(24, 512)), 0).astype(np.float32)
    bounds, rows = QuantisedCopy(vectors[:500]).candidates(vectors[500:], 500)
    squares = np.take_along_axis(truth(vectors[500:], vectors[:500]), rows, axis=1)
    assert (bounds <= squares).all()
    assert np.median((squares - bounds) / squares) < 0.06


@pytest.mark.parametrize("count", [1, 32, 64, 100, 230])
def test_a_library_in_several_parts(count: int) -> None:
    random = np.random.default_rng(count)
    vectors = random.normal(size=(250, 20)).astype(np.float32)
    parted = QuantisedCopy(vectors[:230], CopyTiles(columns=90))
    assert [each.count for each in parted._products] == [90, 90, 50]
    bounds, rows = parted.candidates(vectors[200:], count)
    squares = truth(vectors[200:], vectors[:230])
    assert (bounds <= np.take_along_axis(squares, rows, axis=1)).all()
    for bound, row, square in zip(bounds, rows, squares, strict=True):
        assert len(set(row)) == count
        assert (np.delete(square, row) >= bound.max()).all()


def test_only_the_processor_multiplies() -> None:
    (product,) = QuantisedCopy(np.eye(4, dtype=np.float32))._products
    assert product.session.get_providers() == ["CPUExecutionProvider"]


def probe(queries: Vectors, library: Vectors, wanted: int = 3, asked: int = 31) -> BackendProbe:
    squares = np.sort(truth(queries, library), axis=1)
    return BackendProbe(queries, squares[:, wanted - 1], squares[:, asked - 1])


def test_the_share_of_settled_queries_is_estimated_beforehand() -> None:
    random = np.random.default_rng(6)
    vectors = np.maximum(random.normal(size=(1064, 24)) @ random.normal(size=(24, 512)), 0).astype(np.float32)
    queries, library = vectors[:64], vectors[64:]
    assert settled(library, probe(queries, library), centre_of(library)) > 0.95
    limits = QuantisedCopy(library).candidates(queries, 31)[0].max(axis=1)
    assert (limits > probe(queries, library).near).mean() > 0.95

    alike = (1 + 1e-2 * vectors[:1, :] + 1e-6 * vectors).astype(np.float32)  # near-duplicates of one picture
    alike[::50] = vectors[::50]
    queries, library = alike[1:50], alike[50:]
    assert settled(library, probe(queries, library), centre_of(library)) < 0.05
    limits = QuantisedCopy(library).candidates(queries, 31)[0].max(axis=1)
    assert (limits > probe(queries, library).near).mean() < 0.05


def test_vectors_out_of_range_are_never_settled() -> None:
    library = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    asked = probe(library[:10], library)
    assert settled(library, asked, centre_of(library)) >= 0
    far = library * np.float32(1e12)
    assert settled(far, asked, centre_of(far)) == 0


def test_vectors_out_of_range_get_no_bounds() -> None:
    library = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    queries = library[:4].copy()
    queries[1] *= np.float32(1e10)
    queries[2] = np.float32(3e38)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bounds, rows = QuantisedCopy(library).candidates(queries, 3)
    assert (rows == -1).all(axis=1).tolist() == [False, True, True, False]
    assert np.isinf(bounds[1:3]).all()
    assert 0 in rows[0]
    assert 3 in rows[3]
    assert (QuantisedCopy(library).candidates(queries[1:3], 3)[1] == -1).all()
    library[9] = np.float32(2e38)
    assert (QuantisedCopy(library).candidates(queries, 3)[1] == -1).all()


def test_a_vector_too_long_for_sums_of_32_bits_gets_no_bounds() -> None:
    tiling = CopyTiles(dimension=7)
    library = np.eye(8, dtype=np.float32)
    assert (QuantisedCopy(library, tiling).candidates(library, 3)[1] == -1).all()
    assert (QuantisedCopy(library[:, :7].copy(), tiling).candidates(library[:, :7].copy(), 3)[1] != -1).all()


@pytest.mark.parametrize("dimension", [1, 63, 64, 2048])
def test_the_largest_whole_numbers_add_up(dimension: int) -> None:
    """Vectors of the largest number alone, whose products older instructions would add wrongly."""
    library = np.ones((40, dimension), np.float32)
    library[::2] *= -1
    bounds, rows = QuantisedCopy(library).candidates(library, 40)
    squares = np.take_along_axis(truth(library, library), rows, axis=1)
    assert (bounds <= squares).all()
    np.testing.assert_allclose(bounds, squares, atol=1e-3 * dimension)


def test_samples_of_the_same_vectors_share_a_centre() -> None:
    random = np.random.default_rng(4)
    vectors = np.maximum(random.normal(size=(2000, 24)) @ random.normal(size=(24, 300)), 0).astype(np.float32)
    first = centre_of(vectors[:1000])
    assert np.allclose(first, vectors[:1000].mean(axis=0), atol=0.6 * vectors.std())
    assert centre_of(vectors[1000:], first) is first
    elsewhere = vectors[1000:] + np.float32(2 * vectors.std())
    for others in (elsewhere, vectors[1000:, :200].copy(), np.full_like(vectors, np.nan), np.full_like(vectors, 3e38)):
        assert centre_of(others, first) is not first
    assert centre_of(np.ones((5, 3), np.float32), np.ones(3, np.float32)).tolist() == [1, 1, 1]


@given(seed=st.integers(0, 2**32 - 1), level=st.integers(-6, 6))
@settings(deadline=None)
def test_every_bound_holds_around_another_centre_and_for_queries_that_were_asked_before(seed: int, level: int) -> None:
    random = np.random.default_rng(seed)
    vectors = (random.normal(size=(90, 30)) * 10.0**level + 10.0 ** random.integers(-6, 6)).astype(np.float32)
    centre = (random.normal(size=30) * 10.0 ** random.integers(-6, 6)).astype(np.float32)
    queries = vectors[40:]
    asked = QuantisedCopy(vectors[:20], CopyTiles(queries=7), centre).ask(queries)
    library = QuantisedCopy(vectors[20:60], CopyTiles(queries=9, columns=25), centre)
    for bounds, rows in (library.proposed(asked, 6), library.candidates(queries, 6)):
        squares = truth(queries, vectors[20:60])
        assert (rows >= 0).all()
        assert (bounds <= np.take_along_axis(squares, rows, axis=1)).all()
        for bound, row, square in zip(bounds, rows, squares, strict=True):
            assert (np.delete(square, row) >= bound.max()).all()
