"""The names of parts, and the buckets that they lie in."""

import re
from collections import Counter

from hypothesis import given, strategies as st

from stages.record import part_names

names = st.from_regex(r"[0-9a-f]{1,16}([.-][0-9a-f]{1,3})?", fullmatch=True)


@given(names)
def test_a_part_has_a_bucket_of_two_levels(name: str) -> None:
    assert re.fullmatch(r"[0-3][0-9a-f]/[0-9a-f]", part_names.directory(name))


def test_parts_are_spread_evenly_over_64_and_16_buckets() -> None:
    found = Counter(part_names.directory(f"{number:016x}") for number in range(102_400))
    assert len(found) == 64 * 16
    assert 50 < min(found.values()) <= max(found.values()) < 150
    above = Counter(directory.partition("/")[0] for directory in found.elements())
    assert len(above) == 64
    assert 1400 < min(above.values()) <= max(above.values()) < 1800


def test_the_bucket_of_a_part_stays() -> None:
    """With another one every part of a library would move."""
    assert part_names.directory("3f") == "09/b"
    assert part_names.directory("0123456789abcdef-0") == "25/6"  # of versions until preprocess-15
    assert part_names.directory("0123456789abcdef") == part_names.directory("0123456789abcdef.0")
