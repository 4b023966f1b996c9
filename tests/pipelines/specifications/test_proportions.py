"""The numbers proposed for a library's size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.specifications import proportions
from pipelines.specifications.proportions import MOST_FILES, MOST_IN_SEGMENT, Numbers, outgrown, proposed
from stages.parts import PART

USUAL = Numbers(1, PART)


@pytest.mark.parametrize(
    ("pictures", "side", "numbers"),
    [
        (0, 224, USUAL),
        (1_000_000, 224, USUAL),
        (1_048_576, 96, USUAL),
        (1_048_577, 96, Numbers(2, 6_400)),
        (10_000_000, 224, Numbers(2, 6_400)),
        (100_000_000, 224, Numbers(3, 6_800)),  # a gibibyte of pixels
        (100_000_000, 96, Numbers(3, 38_800)),
        (1_000_000_000, 96, Numbers(4, 38_800)),
    ],
)
def test_segments_grow_with_the_library_and_parts_with_the_segments(pictures: int, side: int, numbers: Numbers) -> None:
    assert proposed(pictures, side) == numbers


def test_large_files_bound_the_pictures_of_a_block() -> None:
    assert proposed(2_000_000, 96, 1_000_000.0) == Numbers(2, 800)
    assert proposed(2_000_000, 96, 100_000_000.0) == Numbers(2, PART)


@given(st.integers(1, 10**10), st.integers(8, 1024), st.floats(0, 1e8))
def test_no_library_outgrows_the_numbers_proposed_for_it(pictures: int, side: int, file_bytes: float) -> None:
    numbers = proposed(pictures, side, file_bytes)
    assert outgrown(pictures, numbers, numbers) == []
    assert numbers.in_segment(pictures) <= MOST_IN_SEGMENT
    assert numbers.part % PART == 0
    assert numbers.segment_digits == 1 or proposed(pictures // 16, side, file_bytes).segment_digits < (
        numbers.segment_digits
    )


@given(st.integers(1, 4), st.integers(1, 10**5))
def test_files_are_counted_as_if_each_picture_fell_anywhere(digits: int, part: int) -> None:
    numbers = Numbers(digits, part)
    assert numbers.files <= 3.0 + 1e-9
    assert numbers.files <= 3 * numbers.segments / part + 1e-9
    assert numbers.files >= Numbers(digits, part + 1).files
    if part == 1:
        assert numbers.files == pytest.approx(3)


def test_the_reasons_have_the_figures() -> None:
    assert outgrown(1_000_000, USUAL, proposed(1_000_000, 224)) == []
    segments, parts = outgrown(2_000_000, USUAL, proposed(2_000_000, 224))
    assert segments == (
        "125,000 pictures are in each of 16 segments, and each picture more reads and writes one again: "
        "SEGMENT_DIGITS=2 makes that 7,813"
    )
    assert parts == (
        "3,037,551 files of features for 2,000,000 pictures are 1.52 a picture with parts of 400 and 256 segments: "
        "PART=6400 makes that 0.12"
    )
    assert Numbers(2, 6_400).files <= MOST_FILES


def test_larger_numbers_than_proposed_are_a_choice() -> None:
    assert outgrown(1_000, Numbers(2, 6_400), USUAL) == []
    assert len(outgrown(20_000_000, Numbers(2, 400), proposed(20_000_000, 224))) == 2


def test_digits_end_at_eight() -> None:
    assert proposed(10**18, 224).segment_digits == proportions.MOST_DIGITS
