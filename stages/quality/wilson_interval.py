"""A share of cases, with Wilson's interval. Only the standard library."""

from __future__ import annotations

import math

Z = 1.959963984540054  # of 95 %


def wilson(right: int, of: int) -> tuple[float, float, float]:
    """A share and the ends of its 95 % interval, which holds for few cases as well. of: at least 1."""
    share = right / of
    centre = (share + Z**2 / (2 * of)) / (1 + Z**2 / of)
    half = Z / (1 + Z**2 / of) * math.sqrt(share * (1 - share) / of + Z**2 / (4 * of**2))
    return share, max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))
