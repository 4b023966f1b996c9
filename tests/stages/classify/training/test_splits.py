"""Sides of pictures, from their ids alone."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from stages.classify.training.splits import fold, held_out, share
from stages.datum.contract import StageError

IDS = [hashlib.sha256(str(each).encode()).hexdigest() for each in range(4000)]
shares = st.floats(0, 1)


@given(st.text(), shares, shares)
def test_a_picture_held_out_at_one_share_is_held_out_at_every_larger_one(id: str, one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert held_out(id, large) or not held_out(id, small)


@given(st.text(), st.integers(2, 20))
def test_a_fold_is_one_of_all(id: str, folds: int) -> None:
    assert 0 <= fold(id, folds) < folds


@given(st.text())
def test_no_picture_is_held_out_at_0_and_each_at_1(id: str) -> None:
    assert not held_out(id, 0)
    assert held_out(id, 1)


def test_the_shares_are_those_asked_for() -> None:
    assert sum(held_out(id, 0.2) for id in IDS) == pytest.approx(800, abs=80)
    assert all(abs(each - 800) < 80 for each in Counter(fold(id, 5) for id in IDS).values())


def test_folds_do_not_depend_on_the_held_out() -> None:
    kept = [id for id in IDS if not held_out(id, 0.5)]
    assert all(abs(each - len(kept) / 5) < 60 for each in Counter(fold(id, 5) for id in kept).values())


def test_sides_are_those_of_all_versions() -> None:
    """A change of these moves pictures from one side to the other, in every library."""
    assert [held_out(id, 0.2) for id in IDS[:12]] == [
        False,
        False,
        False,
        True,
        False,
        False,
        False,
        False,
        False,
        False,
        False,
        False,
    ]
    assert [fold(id, 5) for id in IDS[:12]] == [4, 1, 3, 4, 4, 2, 1, 3, 4, 1, 1, 0]


def test_the_share_is_a_variable() -> None:
    assert share({}) == 0.2
    assert share({"HELD_OUT": "0"}) == 0
    assert share({"HELD_OUT": "0.9"}) == 0.9
    with pytest.raises(StageError, match=r"^HELD_OUT=0.95: must be a number from 0 to 0.9; change it"):
        share({"HELD_OUT": "0.95"})
    with pytest.raises(StageError, match="^HELD_OUT='-1'"):
        share({"HELD_OUT": "-1"})
