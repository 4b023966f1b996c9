"""Perceptual hashes as numbers, and the bits in which they differ. Knows no pictures: see stages.perceptual."""

from typing import Any

import numpy as np

BITS = 64
"""The length of a hash."""

Hashes = np.ndarray[Any, np.dtype[np.uint64]]
Bits = np.ndarray[Any, np.dtype[np.uint8]]


def differing(one: Hashes, other: Hashes) -> Bits:
    """The number of bits that differ, uint8, of each pair of hashes, uint64, of shapes that NumPy broadcasts."""
    found: Bits = np.bitwise_count(one ^ other)
    return found
