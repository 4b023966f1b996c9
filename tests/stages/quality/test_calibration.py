"""Calibration compared with scikit-learn's isotonic regression, and thresholds with a search of all distances."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.isotonic import IsotonicRegression

from stages.quality.calibration import bins, blocks, knots, probability, thresholds
from tests.example_counts import examples

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
    # scikit-learn interpolates in the distances' float32
    assert probability(knots(found), distances) == pytest.approx(fit.predict(distances), abs=1e-6)
    assert sum(each.pairs for each in found) == len(pairs)
    assert all(a.probability > b.probability and a.high < b.low for a, b in itertools.pairwise(found))


@settings(max_examples=examples(200), deadline=None)
@given(PAIRS, st.sampled_from([0.5, 0.8, 0.95]), st.sampled_from([0.4, 1.0, np.inf]))
def test_a_threshold_is_the_largest_distance_of_that_probability(
    pairs: list[tuple[int, bool]], likely: float, reach: float
) -> None:
    distances, same = sorted_pairs(pairs)
    known = distances <= reach
    (found,) = thresholds(distances, same, reach, [likely])
    if not known.any():
        assert found.distance is None
        return
    fit = IsotonicRegression(increasing=False).fit_transform(distances[known], same[known].astype(np.float64))
    good = distances[known][fit >= likely - 1e-9]
    if not len(good):
        assert found.distance is None
        return
    assert found.distance is not None
    within = distances <= good.max()
    assert (distances <= found.distance).tolist() == within.tolist()
    assert found.pairs == within.sum()
    assert found.share == pytest.approx(same[within].mean())
    assert found.share >= likely - 1e-9
    assert not found.limited or reach < np.inf


def test_a_threshold_has_few_digits_and_stays_within_reach() -> None:
    distances = np.array([0.1234567, 0.2, 0.31239, 0.9], np.float32)
    same = np.array([True, True, True, False])
    (found,) = thresholds(distances, same, np.inf, [0.95])
    assert (found.distance, found.pairs, found.limited) == (0.313, 3, False)
    (found,) = thresholds(distances, same, 0.25, [0.95])
    assert (found.distance, found.pairs, found.recall, found.limited) == (0.201, 2, 2 / 3, True)
    close, same = np.array([0.31239, 0.3124, 0.9], np.float32), np.array([True, False, False])
    assert thresholds(close, same, np.inf, [0.95])[0].distance == 0.31239


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
    assert thresholds(*none, np.inf, [0.95])[0].distance is None
    equal = np.zeros(2, np.float32), np.array([True, False])
    assert [each.pairs for each in bins(*equal)] == [2]
    assert knots(blocks(*equal)) == [(0.0, 0.5)]
    assert thresholds(*equal, np.inf, [0.5])[0].distance == 0
