"""Calibration compared with scikit-learn's isotonic regression, and thresholds with a search of all distances."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from stages.calibration import bins, blocks, knots, probability, threshold
from tests.amounts import examples

PAIRS = st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=60)


def sorted_pairs(pairs: list[tuple[int, bool]]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Distances, near ones first, and whether the labels are the same."""
    pairs = sorted(pairs, key=lambda pair: pair[0])
    return np.array([each for each, _ in pairs], np.float32) / 8, np.array([same for _, same in pairs])


@settings(max_examples=examples(200), deadline=None)
@given(PAIRS)
def test_probabilities_are_the_isotonic_regression(pairs: list[tuple[int, bool]]) -> None:
    distances, same = sorted_pairs(pairs)
    found = blocks(distances, same)
    fit = IsotonicRegression(increasing=False, out_of_bounds="clip").fit(distances, same.astype(np.float64))
    assert probability(knots(found), distances) == pytest.approx(fit.predict(distances))
    assert sum(each.pairs for each in found) == len(pairs)
    assert all(a.probability > b.probability and a.high < b.low for a, b in itertools.pairwise(found))


@settings(max_examples=examples(200), deadline=None)
@given(PAIRS, st.sampled_from([0.5, 0.8, 0.95]), st.sampled_from([0.4, 1.0, np.inf]))
def test_a_threshold_is_the_largest_distance_of_that_precision(
    pairs: list[tuple[int, bool]], precision: float, reach: float
) -> None:
    distances, same = sorted_pairs(pairs)
    within = [distance for distance in np.unique(distances) if distance <= reach]
    good = [distance for distance in within if same[distances <= distance].mean() >= precision]
    found = threshold(distances, same, precision, reach)
    if not good:
        assert found.distance is None
        return
    assert found.distance is not None
    assert (distances <= found.distance).tolist() == (distances <= max(good)).tolist()
    assert found.pairs == (distances <= max(good)).sum()
    assert found.share == pytest.approx(same[distances <= max(good)].mean())
    assert found.limited == (max(good) == max(within) and reach < np.inf)


def test_a_threshold_has_few_digits() -> None:
    distances = np.array([0.1234567, 0.2, 0.31239, 0.9], np.float32)
    same = np.array([True, True, True, False])
    assert threshold(distances, same, 0.95, np.inf).distance == 0.313
    close = np.array([0.31239, 0.3124, 0.9], np.float32)
    assert threshold(close, np.array([True, False, False]), 0.95, np.inf).distance == 0.31239


def test_the_histogram_has_all_pairs() -> None:
    distances, same = sorted_pairs([(at, at < 3) for at in range(12)] * 3)
    found = bins(distances, same)
    assert (found[0].low, found[-1].high) == (0, distances.max())
    assert sum(each.pairs for each in found) == 36
    assert sum(each.same for each in found) == 9


def test_no_pairs_and_pairs_at_distance_0() -> None:
    none = np.empty(0, np.float32), np.empty(0, np.bool_)
    assert not blocks(*none)
    assert not bins(*none)
    assert threshold(*none, 0.95, np.inf).distance is None
    equal = np.zeros(2, np.float32), np.array([True, False])
    assert [each.pairs for each in bins(*equal)] == [2]
    assert knots(blocks(*equal)) == [(0.0, 0.5)]
    assert threshold(*equal, 0.5, np.inf).distance == 0
