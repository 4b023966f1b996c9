"""Perceptual hashes turned and mirrored, beside the hashes of pictures that are so."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from stages.decode.perceptual_hash import perceptual_hash
from stages.record.hashes import NO_VERDICT, TURNS, UNRELATED, Hashes, differing, least_differing, turned
from tests.stages.scenes import lain, scene

hashes = st.integers(1, 2**64 - 1)


def array(*values: int) -> Hashes:
    return np.array(values, np.uint64)


@pytest.mark.parametrize("turn", range(TURNS))
def test_the_hash_of_a_turned_picture_is_the_turned_hash(turn: int) -> None:
    for seed in range(12):
        picture = scene(seed)
        found = perceptual_hash(np.asarray(lain(picture, turn)))
        expected = turned(array(perceptual_hash(np.asarray(picture))), turn)
        # Scaling rounds the last pixel in another order: a frequency near zero may change its sign.
        assert differing(array(found), expected)[0] <= 2
        assert turn == 0 or differing(array(found), array(perceptual_hash(np.asarray(picture))))[0] > 12


@given(hashes, hashes, st.integers(0, TURNS - 1))
def test_turns_lose_nothing(one: int, other: int, turn: int) -> None:
    both = array(one, other)
    assert len({int(turned(both[:1], each)[0]) for each in range(TURNS)}) <= TURNS
    assert differing(*turned(both, turn)[:, None]) == differing(*both[:, None])
    assert any(np.array_equal(turned(turned(both, turn), back), both) for back in range(TURNS))
    assert least_differing(turned(both[:1], turn), both[1:]) == least_differing(both[:1], both[1:])


@given(st.lists(hashes, min_size=1, max_size=5), st.lists(hashes, min_size=1, max_size=5))
def test_the_least_is_that_of_the_best_turn(ones: list[int], others: list[int]) -> None:
    found = least_differing(array(*ones)[:, None], array(*others))
    each = [differing(turned(array(*ones), turn)[:, None], array(*others)) for turn in range(TURNS)]
    assert np.array_equal(found, np.minimum.reduce(each))


def test_a_hash_without_a_verdict_is_like_no_other_one() -> None:
    nothing = array(NO_VERDICT, NO_VERDICT, 5)
    assert differing(nothing[:, None], nothing).tolist() == [[UNRELATED] * 3, [UNRELATED] * 3, [UNRELATED] * 2 + [0]]
    assert least_differing(nothing[:, None], nothing).tolist()[2] == [UNRELATED, UNRELATED, 0]
    assert [int(turned(nothing, turn)[0]) for turn in range(TURNS)] == [NO_VERDICT] * TURNS
