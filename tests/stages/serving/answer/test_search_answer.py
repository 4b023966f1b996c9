"""Near-duplicates among the pictures of an answer."""

import numpy as np

from stages.knn.vector_set import VectorSet
from stages.record.hashes import NO_VERDICT
from stages.serving.answer.search_answer import NEAR, NEAR_BITS, _groups

BITS = (1 << NEAR_BITS) - 1
"""As many bits as near-duplicates may differ in."""


def groups(places: list[float], hashes: list[int]) -> list[int]:
    vectors = np.array([[each, 1.0] for each in places], np.float32).reshape(-1, 2)
    return _groups(VectorSet(vectors), np.array(hashes, np.uint64), NEAR)


def test_a_chain_of_near_pictures_is_no_group() -> None:
    assert groups([0.0, 0.5, 1.0, 1.5], [1 << 63] * 4) == [1, 1, 2, 2]
    assert groups([0.0] * 3, [1 << 63, 1 << 63 | BITS, 1 << 63 | BITS << 20 | BITS]) == [1, 1, 2]


def test_pictures_that_say_nothing_are_alone() -> None:
    assert groups([0.0] * 4, [NO_VERDICT, 1 << 63, NO_VERDICT, 1 << 63]) == [1, 2, 3, 2]
    assert groups([], []) == []
