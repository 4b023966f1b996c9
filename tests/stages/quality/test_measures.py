"""Measures compared with scikit-learn and with their definitions, one query at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.metrics import average_precision_score

from stages.quality import measures
from stages.quality.measures import RelevanceMatrix, estimate, measure, ranks
from stages.quality.wilson_interval import wilson
from tests.example_counts import examples


def judged(seed: int, queries: int, k: int, labels: int = 3, whole: bool = False) -> RelevanceMatrix:
    """Random judgements; `whole`: with all of a query's right ones among its k."""
    lot = np.random.default_rng(seed)
    depths = np.full(queries, k, np.int32) if whole else lot.integers(1, k + 1, queries).astype(np.int32)
    right = (lot.random((queries, k)) < 0.5) & (np.arange(k) < depths[:, None])
    if whole:
        right[:, 0] |= ~right.any(axis=1)
    relevant = right.sum(axis=1).astype(np.int64)
    if not whole:
        relevant += lot.integers(0, 3, queries)
        relevant = np.maximum(relevant, 1)
    return RelevanceMatrix(lot.integers(0, labels, queries).astype(np.int32), right, depths, relevant)


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_measures_are_their_definitions(seed: int, k: int) -> None:
    given_ = judged(seed, 7, k)
    found = measure(given_, ranks(k))
    for row in range(7):
        right, depth, relevant = given_.right[row].tolist(), int(given_.depths[row]), int(given_.relevant[row])
        values = dict(zip(measures.names(ranks(k)), found[row].tolist(), strict=True))
        for at in ranks(k):
            assert values[f"precision@{at}"] == pytest.approx(sum(right[:at]) / min(at, depth))
            assert values[f"recall@{at}"] == pytest.approx(sum(right[:at]) / relevant)
        precisions = [sum(right[:at]) / at for at in range(1, k + 1) if right[at - 1]]
        assert values[f"mAP@{k}"] == pytest.approx(sum(precisions) / min(relevant, depth))
        assert values[f"MRR@{k}"] == pytest.approx(1 / (1 + right.index(True)) if any(right) else 0)


def test_average_precision_is_scikit_learns_where_all_right_ones_are_ranked() -> None:
    given_ = judged(1, 50, 10, whole=True)
    found = measure(given_, [10])[:, 2]
    scores = -np.arange(10)
    assert found == pytest.approx([average_precision_score(right, scores) for right in given_.right])


def test_means_over_queries_and_over_labels() -> None:
    given_ = judged(2, 200, 5)
    values = measure(given_, [1, 5])
    found = estimate(given_, [1, 5])
    of_labels = [values[given_.labels == label].mean(axis=0) for label in range(3)]
    assert [each.value for each in found.micro.values()] == pytest.approx(values.mean(axis=0).tolist())
    assert [each.value for each in found.macro.values()] == pytest.approx(np.mean(of_labels, axis=0).tolist())


def test_intervals_are_those_of_queries_drawn_one_by_one() -> None:
    given_ = judged(3, 300, 5)
    values = measure(given_, [1, 5])
    lot = np.random.default_rng(0)
    drawn = [values[lot.integers(0, 300, 300)].mean(axis=0) for _ in range(2000)]
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    found = estimate(given_, [1, 5]).micro.values()
    assert [each.low for each in found] == pytest.approx(low.tolist(), abs=0.01)
    assert [each.high for each in found] == pytest.approx(high.tolist(), abs=0.01)


def test_intervals_depend_on_the_judgements_alone() -> None:
    given_ = judged(4, 100, 5)
    assert estimate(given_, [1, 5]) == estimate(given_.part(np.arange(100)[::-1].copy()), [1, 5])


def test_fewer_resamples_where_they_would_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    given_ = judged(5, 50, 5)
    assert estimate(given_, [1]).resamples == measures.RESAMPLES
    monkeypatch.setattr(measures, "_WORK", 1)
    assert estimate(given_, [1]).resamples == 100


def test_queries_count_if_something_can_be_right() -> None:
    right = np.zeros((3, 2), np.bool_)
    each = RelevanceMatrix(np.zeros(3, np.int32), right, np.array([2, 0, 2], np.int32), np.array([1, 1, 0]))
    assert each.counts.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("k", "so"), [(1, [1]), (3, [1, 2, 3]), (12, [*range(1, 11), 12]), (50, [*range(1, 11), 20, 50])]
)
def test_ranks(k: int, so: list[int]) -> None:
    assert ranks(k) == so


def test_wilsons_interval() -> None:
    assert wilson(30, 30)[1] == pytest.approx(0.8865, abs=1e-4)  # as in Wilson's formula with z = 1.96
    assert wilson(5, 10)[1:] == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(0, 4)[:2] == (0, 0)
