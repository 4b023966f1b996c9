"""The numbers of a library beside those proposed for its size: segments, and the buckets of partition. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pipelines.client.deploying import partsizes
from pipelines.specifications import proportions
from pipelines.specifications.proportions import Numbers


@dataclass(frozen=True, slots=True)
class Growth:
    """segment_digits, buckets: as deployed; in_segment, in_bucket: the pictures of a segment, and of a bucket; files:
    those that partition writes for a picture at most; proposed: the numbers for this size; outgrown: the reasons for a
    change, none if there is none to make."""

    segment_digits: int
    buckets: int
    in_segment: int
    in_bucket: int
    files: float
    proposed: Numbers
    outgrown: tuple[str, ...]


def read(pipelines: Iterable[Any], pictures: int) -> Growth:
    """The growth of a library of so many pictures. pipelines: the deployed ones, as PipelineInfos with details."""
    now, then = partsizes.numbers(info.details for info in pipelines), proportions.proposed(pictures)
    return Growth(
        now.segment_digits,
        now.buckets,
        now.in_segment(pictures),
        now.in_bucket(pictures),
        round(now.files(pictures), 4),
        then,
        tuple(proportions.outgrown(pictures, now, then)),
    )


def settings(found: Growth) -> dict[str, str]:
    """The variables to change, by name; none for a library that has not outgrown its segments."""
    then = found.proposed.segment_digits
    return {partsizes.DIGITS: str(then)} if then > found.segment_digits else {}
