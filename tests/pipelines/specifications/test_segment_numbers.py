"""The numbers proposed for a library's size."""

import pytest
from hypothesis import given, strategies as st

from pipelines.specifications.segment_numbers import (
    BUCKETS,
    MOST_BUCKETS,
    MOST_FILES,
    MOST_IN_BUCKET,
    MOST_IN_SEGMENT,
    SegmentNumbers,
    outgrown,
    proposed,
)
from stages.record import part_names

USUAL = SegmentNumbers(1)


@pytest.mark.parametrize(
    ("pictures", "numbers"),
    [
        (0, USUAL),
        (1_000_000, USUAL),
        (1_048_576, USUAL),
        (1_048_577, SegmentNumbers(2)),
        (4_194_304, SegmentNumbers(2)),
        (4_194_305, SegmentNumbers(2, MOST_BUCKETS)),
        (10_000_000, SegmentNumbers(2, MOST_BUCKETS)),
        (20_000_000, SegmentNumbers(2, MOST_BUCKETS)),  # 4,096 segments would be 0.63 files a picture
        (100_000_000, SegmentNumbers(3, MOST_BUCKETS)),
        (1_000_000_000, SegmentNumbers(3, MOST_BUCKETS)),
        (1_100_000_000, SegmentNumbers(4, MOST_BUCKETS)),
    ],
)
def test_segments_and_buckets_grow_with_the_library(pictures: int, numbers: SegmentNumbers) -> None:
    assert proposed(pictures) == numbers


@given(st.integers(0, 10**11), st.integers(0, 10**10))
def test_no_library_outgrows_the_numbers_proposed_for_it_and_growth_takes_none_back(pictures: int, more: int) -> None:
    numbers, then = proposed(pictures), proposed(pictures + more)
    assert outgrown(pictures, numbers, numbers) == []
    assert numbers.segment_digits <= then.segment_digits
    assert numbers.buckets <= then.buckets


@given(st.integers(1, 10**11))
def test_segments_are_small_as_far_as_files_are_few(pictures: int) -> None:
    numbers = proposed(pictures)
    more = SegmentNumbers(numbers.segment_digits + 1, numbers.buckets)
    assert numbers.in_segment(pictures) <= MOST_IN_SEGMENT or more.files(pictures) > MOST_FILES
    assert numbers.segment_digits == 1 or numbers.files(pictures) <= MOST_FILES
    assert numbers.in_bucket(pictures) <= MOST_IN_BUCKET or numbers.buckets == MOST_BUCKETS


@given(st.integers(1, 8), st.sampled_from([BUCKETS, MOST_BUCKETS]), st.integers(1, 10**10))
def test_files_are_those_of_each_segment_of_a_bucket_and_no_more_than_the_pictures_have(
    digits: int, buckets: int, pictures: int
) -> None:
    found = SegmentNumbers(digits, buckets).files(pictures) * pictures
    assert found == pytest.approx(min(3 * 16**digits * buckets, 3 * pictures))
    assert SegmentNumbers(digits, buckets).files(0) == 0


def test_the_reasons_have_the_figures_and_the_commands() -> None:
    assert outgrown(1_000_000, USUAL, proposed(1_000_000)) == []
    (segments,) = outgrown(2_000_000, USUAL, proposed(2_000_000))
    assert segments == (
        "125,000 pictures are in each of 16 segments, and each picture more reads one again: "
        "SEGMENT_DIGITS=2 makes that 7,813 (`lookalike upgrade --sizes`)"
    )
    (buckets,) = outgrown(5_000_000, SegmentNumbers(2), proposed(5_000_000))
    assert buckets == (
        "78,125 pictures are in each of 64 buckets of partition, and each picture more reads and writes one again: the "
        "overlay `large` makes that 4,883 (`lookalike upgrade --overlay large`)"
    )


def test_larger_numbers_than_proposed_are_a_choice() -> None:
    assert outgrown(1_000, SegmentNumbers(2, MOST_BUCKETS), USUAL) == []
    assert len(outgrown(20_000_000, USUAL, proposed(20_000_000))) == 2


def test_digits_end_at_eight() -> None:
    assert proposed(10**18).segment_digits == part_names.MOST_DIGITS
