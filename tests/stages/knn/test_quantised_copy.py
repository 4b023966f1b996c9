"""The copy in 8-bit integers: bounds that hold for all vectors and are tight enough to be useful."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from stages.knn import quantised_copy
from stages.knn.backend import Vectors
from stages.knn.quantised_copy import QuantisedCopy


def truth(queries: Vectors, library: Vectors) -> NDArray[np.float64]:
    """Squared distances of all pairs, float64."""
    apart = queries[:, None].astype(np.float64) - library[None].astype(np.float64)
    squares: NDArray[np.float64] = (apart**2).sum(axis=2)
    return squares


def bounds(held: QuantisedCopy, queries: Vectors) -> NDArray[np.float64]:
    """Lower bounds of the squared distances of all pairs, -inf where nothing is known."""
    asked = held.ask(queries)
    return asked.squares(held.bounds(asked))


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
    """At all lengths and distances from 0, no row is nearer than its bound."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(rows + 5, dimension)) * 10.0 ** random.integers(0, spread + 1, size=(rows + 5, 1))
    vectors = ((vectors + 10.0**offset) * 10.0**level).astype(np.float32)
    library, queries = vectors[:rows], vectors[rows - 1 :]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bounds(QuantisedCopy(library), queries)
    assert found.shape == (len(queries), rows)
    assert (found <= truth(queries, library)).all()


def test_the_bounds_of_a_networks_vectors_are_close() -> None:
    random = np.random.default_rng(2)
    vectors = np.maximum(random.normal(size=(600, 24)) @ random.normal(size=(24, 512)), 0).astype(np.float32)
    squares = truth(vectors[500:], vectors[:500])
    found = bounds(QuantisedCopy(vectors[:500]), vectors[500:])
    assert (found <= squares).all()
    assert np.median((squares - found) / squares) < 0.06


def test_a_library_in_several_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(1).normal(size=(250, 20)).astype(np.float32)
    whole = QuantisedCopy(vectors[:230])
    monkeypatch.setattr(quantised_copy, "_PRODUCT", 90 * 20)
    monkeypatch.setattr(quantised_copy, "_BLOCK", 32)
    parted = QuantisedCopy(vectors[:230])
    assert [len(each._sessions) for each in (whole, parted)] == [1, 3]
    assert np.array_equal(bounds(whole, vectors[200:]), bounds(parted, vectors[200:]))


def test_only_the_processor_multiplies() -> None:
    (session,) = QuantisedCopy(np.eye(4, dtype=np.float32))._sessions
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_vectors_out_of_range_get_no_bounds() -> None:
    library = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    queries = library[:4].copy()
    queries[1] *= np.float32(1e10)
    queries[2] = np.float32(3e38)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bounds(QuantisedCopy(library), queries)
    assert np.isneginf(found).all(axis=1).tolist() == [False, True, True, False]
    assert np.isfinite(found[[0, 3]]).all()
    assert np.isneginf(bounds(QuantisedCopy(library), queries[1:3])).all()
    library[9] = np.float32(2e38)
    held = QuantisedCopy(library)
    assert not held.usable
    assert np.isneginf(bounds(held, queries)).all()


def test_a_vector_too_long_for_sums_of_32_bits_gets_no_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stages.knn.quantised_copy._LONGEST", 7)
    library = np.eye(8, dtype=np.float32)
    assert np.isneginf(bounds(QuantisedCopy(library), library)).all()
    shorter = library[:, :7].copy()
    assert np.isfinite(bounds(QuantisedCopy(shorter), shorter)).all()


@pytest.mark.parametrize("dimension", [1, 63, 64, 2048])
def test_the_largest_whole_numbers_add_up(dimension: int) -> None:
    """Vectors of the largest number alone, whose products older instructions would add wrongly."""
    library = np.ones((40, dimension), np.float32)
    library[::2] *= -1
    found, squares = bounds(QuantisedCopy(library), library), truth(library, library)
    assert (found <= squares).all()
    np.testing.assert_allclose(found, squares, atol=1e-3 * dimension)


@given(seed=st.integers(0, 2**32 - 1), level=st.integers(-6, 6))
@settings(deadline=None)
def test_every_bound_holds_around_another_centre_and_for_queries_that_were_asked_before(seed: int, level: int) -> None:
    random = np.random.default_rng(seed)
    vectors = (random.normal(size=(90, 30)) * 10.0**level + 10.0 ** random.integers(-6, 6)).astype(np.float32)
    centre = (random.normal(size=30) * 10.0 ** random.integers(-6, 6)).astype(np.float32)
    queries, library = vectors[40:], vectors[20:60]
    asked = QuantisedCopy(vectors[:20], centre).ask(queries)
    found = asked.squares(QuantisedCopy(library, centre).bounds(asked))
    assert np.isfinite(found).all()
    assert (found <= truth(queries, library)).all()
