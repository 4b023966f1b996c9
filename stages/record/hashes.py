"""Perceptual hashes as numbers, turned and mirrored, and the bits in which they differ. Knows no pictures: see
stages.decode.perceptual_hash, which says what the bits mean."""

from typing import Any

import numpy as np

BITS = 64
"""The length of a hash."""

NO_VERDICT = 0
"""The hash of a picture with too little in it for a hash: it says nothing about copies of it."""

TURNS = 8
"""The ways in which a picture can lie. Bits 1, 2 and 4 of a turn's number: upside down (its rows in reverse order), the
columns in reverse order, and first of all rows and columns exchanged."""

UNRELATED = BITS
"""The bits in which a hash without a verdict differs from any other."""

Hashes = np.ndarray[Any, np.dtype[np.uint64]]
BitCounts = np.ndarray[Any, np.dtype[np.uint8]]

_SIDE = 8  # the bits are row by row those of a matrix of frequencies


def turned(hashes: Hashes, turn: int) -> Hashes:
    """The hashes, uint64 of any shape, of the same pictures turned."""
    found = _exchanged(hashes) if turn & 4 else hashes
    lain: Hashes = np.where(hashes == NO_VERDICT, hashes, found ^ _MASKS[turn & 3])
    return lain


def differing(one: Hashes, other: Hashes) -> BitCounts:
    """The number of bits that differ, uint8, of each pair of hashes, uint64, of shapes that NumPy broadcasts."""
    found: BitCounts = np.bitwise_count(one ^ other)
    found[np.broadcast_to((one == NO_VERDICT) | (other == NO_VERDICT), found.shape)] = UNRELATED
    return found


def least_differing(one: Hashes, other: Hashes) -> BitCounts:
    """The same for the turn of `one` that makes them most alike."""
    ways = (turned(one, turn) for turn in range(TURNS))
    least: BitCounts = np.bitwise_count(next(ways) ^ other)
    for each in ways:
        np.minimum(least, np.bitwise_count(each ^ other), out=least)
    least[np.broadcast_to((one == NO_VERDICT) | (other == NO_VERDICT), least.shape)] = UNRELATED
    return least


def _mask(odd_rows: bool, odd_columns: bool) -> np.uint64:
    """The bits of the frequencies that change their sign: a reversed axis changes those of odd number along it."""
    numbers = np.arange(_SIDE) % 2
    changed = (numbers * odd_rows)[:, np.newaxis] ^ (numbers * odd_columns)
    return np.uint64(int.from_bytes(np.packbits(changed.astype(np.uint8)).tobytes(), "big"))


_MASKS = [_mask(bool(turn & 1), bool(turn & 2)) for turn in range(4)]


def _exchanged(hashes: Hashes) -> Hashes:
    """The matrices of bits, transposed."""
    bits = np.unpackbits(np.ascontiguousarray(hashes, ">u8").view(np.uint8)).reshape(-1, _SIDE, _SIDE)
    back = np.packbits(bits.transpose(0, 2, 1).reshape(-1, BITS), axis=1).view(">u8")
    return back.astype(np.uint64).reshape(hashes.shape)
