"""How measurements grow with size, compared with n log n. Measures nothing."""

import math
from collections.abc import Mapping
from itertools import pairwise

from benchmarks.kit.report import Line, line


def allowed(size: int, larger: int) -> float:
    """The factor by which n log n grows to the larger size. Sizes are above 1."""
    return larger * math.log(larger) / (size * math.log(size))


def growth(measured: Mapping[int, float], what: str = "growth") -> list[Line]:
    """A line for each pair of neighbouring sizes, given the measurements by size: met if they grow no faster."""
    lines = []
    for (size, before), (larger, after) in pairwise(sorted(measured.items())):
        bound, factor = allowed(size, larger), after / before
        said = f"{what} from {size} to {larger}"
        lines.append(line(said, factor, bound, "times", "no more", factor <= bound))
    return lines
