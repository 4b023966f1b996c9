"""Pairs of hashes that differ in few bits, found in bands, compared with a look at every pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from stages.knn import hash_index
from stages.knn.hash_index import HashIndex, HashPairs
from stages.record.hashes import NO_VERDICT, TURNS, least_differing, turned
from tests.example_counts import examples


def made(seed: int, count: int, most: int) -> NDArray[np.uint64]:
    """Hashes, some without a verdict, and after them the same again, turned, and in up to so many bits changed."""
    lot = np.random.default_rng(seed)
    first = lot.integers(1, 2**64, count, dtype=np.uint64)
    first[:: max(2, count // 2)] = NO_VERDICT
    again = np.concatenate([turned(first[at : at + 1], int(lot.integers(TURNS))) for at in range(count)])
    for row in range(count):
        for bit in lot.choice(64, int(lot.integers(0, most + 1)), replace=False):
            again[row] ^= np.uint64(1) << np.uint64(bit)
    return np.concatenate([first, np.where(first == NO_VERDICT, first, again)])


def together(found: list[HashPairs]) -> list[tuple[int, int, int]]:
    return [pair for each in found for pair in zip(*(column.tolist() for column in each), strict=True)]


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(0, 24), st.booleans(), st.sampled_from([3, 8192]))
def test_every_pair_within_the_bits_is_found_once(seed: int, count: int, bits: int, after: bool, at_once: int) -> None:
    hashes = made(seed, count, bits + 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hash_index, "_FEWEST_BANDS", 5)  # small tables
        patch.setattr(hash_index, "_LOOKED_UP", at_once)
        patch.setattr(hash_index, "_COMPARED", at_once)
        patch.setattr(hash_index, "_QUERIES", 3)
        patch.setattr(hash_index, "_ROWS", 7)
        found = together([*HashIndex(hashes, bits).pairs(hashes, after)])
        patch.setattr(hash_index, "_LOOKUP", 1e-9)
        patch.setattr(hash_index, "_CANDIDATE", 1e-9)
        banded = HashIndex(hashes, bits)
        assert bool(banded.bands) == (bits >= 4 and np.any(hashes != NO_VERDICT))
        assert together([*banded.pairs(hashes, after)]) == found
    apart = least_differing(hashes[:, None], hashes)
    true = [(*pair, int(apart[pair])) for pair in zip(*np.nonzero(apart <= bits), strict=True)]
    assert found == [pair for pair in true if not after or pair[1] > pair[0]]


def test_many_hashes_are_looked_up_in_bands_and_few_or_equal_ones_compared() -> None:
    many = np.random.default_rng(0).integers(1, 2**64, 100_000, dtype=np.uint64)
    assert HashIndex(many, 11).bands and not HashIndex(many[:100], 11).bands
    assert not HashIndex(np.full(100_000, 5, np.uint64), 11).bands  # every lookup would find all
    for bits in (3, 7, 11, 16):
        for count in (10_000, 1_000_000, 100_000_000):
            bands = hash_index._cheapest(count, bits)
            assert not bands or sum(radius + 1 for _, _, radius in bands) == bits + 1
            assert not bands or sum(width for _, width, _ in bands) == 64


def test_nothing_is_near_nothing() -> None:
    none = np.empty(0, np.uint64)
    assert together([*HashIndex(none, 5).pairs(made(0, 3, 1))]) == []
    assert together([*HashIndex(made(0, 3, 1), 5).pairs(none)]) == []
