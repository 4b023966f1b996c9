"""Quantities of memory, disk and processors, as Kubernetes reads them.

One thing is stricter here: a unit without a number ("Gi") is not a quantity. Kubernetes takes it for 0.
"""

import math
import re
from fractions import Fraction

LARGE = ("k", "M", "G", "T", "P", "E")
"""The suffixes of powers of 1000; in upper case and followed by `i`, they are those of powers of 1024."""

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,3}))?")
_FACTORS = {
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate(LARGE, start=1)},
    **{f"{suffix.upper()}i": Fraction(1024) ** power for power, suffix in enumerate(LARGE, start=1)},
    **{suffix: Fraction(1, 1000) ** power for power, suffix in enumerate(("m", "u", "n"), start=1)},
}
_BILLION = 10**9
_MOST = 2**63 - 1
_LONGEST = 1000


def parse(text: str) -> Fraction | None:
    """The number that a quantity such as "512Mi" or "1.5e3" stands for, or None for text that is not a quantity.

    As in Kubernetes, a number is rounded up to billionths, away from 0, and one with a binary suffix has a maximum.
    """
    found = _QUANTITY.fullmatch(text)
    if found is None or len(text) > _LONGEST:
        return None
    digits, suffix, exponent = found.groups()
    number = Fraction(digits) * (Fraction(10) ** int(exponent) if exponent else _FACTORS.get(suffix, Fraction(1)))
    size = Fraction(math.ceil(abs(number) * _BILLION), _BILLION)
    if suffix and suffix.endswith("i"):
        size = min(size, Fraction(_MOST))
    return -size if number < 0 else size
