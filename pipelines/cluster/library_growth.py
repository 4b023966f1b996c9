"""The numbers of a library beside those proposed for its size: segments, and the buckets of partition. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pipelines.client.deployment import part_sizes
from pipelines.specifications import segment_numbers
from pipelines.specifications.segment_numbers import SegmentNumbers


@dataclass(frozen=True, slots=True)
class LibraryGrowth:
    """segment_digits, buckets: as deployed; in_segment, in_bucket: the pictures of a segment, and of a bucket; files:
    those that partition writes for a picture at most; proposed: the numbers for this size; outgrown: the reasons for a
    change, none if there is none to make."""

    segment_digits: int
    buckets: int
    in_segment: int
    in_bucket: int
    files: float
    proposed: SegmentNumbers
    outgrown: tuple[str, ...]


def read(pipelines: Iterable[Any], pictures: int) -> LibraryGrowth:
    """The growth of a library of so many pictures. pipelines: the deployed ones, as PipelineInfos with details."""
    now, then = part_sizes.numbers(info.details for info in pipelines), segment_numbers.proposed(pictures)
    return LibraryGrowth(
        now.segment_digits,
        now.buckets,
        now.in_segment(pictures),
        now.in_bucket(pictures),
        round(now.files(pictures), 4),
        then,
        tuple(segment_numbers.outgrown(pictures, now, then)),
    )


def settings(found: LibraryGrowth) -> dict[str, str]:
    """The variables to change, by name; none for a library that has not outgrown its segments."""
    then = found.proposed.segment_digits
    return {part_sizes.DIGITS: str(then)} if then > found.segment_digits else {}
