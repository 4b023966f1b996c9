"""The numbers that grow with a library: the segments of its index, and the buckets in which partition fills them. Pure.

More segments make a picture more cheap, since its segment is read again; and a search dear, since each segment is a
datum. partition writes three files for each segment of a bucket, so segments and buckets multiply: there may be only as
many as leave several pictures in each.
"""

from dataclasses import dataclass

from stages.datum.text_format import counted
from stages.record.part_names import MOST_DIGITS

DIGITS = "SEGMENT_DIGITS"
"""The variable of partition with the digits of a segment."""

BUCKETS = 64
"""The buckets of partition as its specification has them."""

MOST_BUCKETS = 1_024
"""Those with the overlay `large`."""

MOST_IN_SEGMENT = 16**4
"""The most pictures of a segment, unless files would be too many: with vectors of 1,280 numbers 0.35 GB, which search
reads again after one more picture; index reads and writes the tables of it, 0.01 GB."""

MOST_IN_BUCKET = 16**4
"""The most pictures of a bucket, where there may be more buckets: with thumbnails 0.86 GB, which one more picture reads
and writes again in partition."""

MOST_FILES = 0.2
"""The most files a picture that partition should write; a million pictures are 200,000."""

_FILES = 3
"""The files that partition writes for each segment of a bucket: vectors, a table, thumbnails."""


@dataclass(frozen=True, slots=True)
class SegmentNumbers:
    """segment_digits: the hex digits of an id that make a segment. buckets: the datums of partition."""

    segment_digits: int
    buckets: int = BUCKETS

    @property
    def segments(self) -> int:
        """The number of segments."""
        return int(16**self.segment_digits)

    def files(self, pictures: int) -> float:
        """The files a picture that partition writes at most for a library of so many; 0 for an empty one."""
        return _FILES * min(self.segments * self.buckets, pictures) / pictures if pictures else 0.0

    def in_segment(self, pictures: int) -> int:
        """The pictures of a segment of a library."""
        return -(-pictures // self.segments)

    def in_bucket(self, pictures: int) -> int:
        """The pictures of a bucket of a library."""
        return -(-pictures // self.buckets)


def proposed(pictures: int) -> SegmentNumbers:
    """The numbers for a library of so many pictures."""
    buckets = BUCKETS if pictures <= MOST_IN_BUCKET * BUCKETS else MOST_BUCKETS
    digits = 1
    while digits < MOST_DIGITS and SegmentNumbers(digits).in_segment(pictures) > MOST_IN_SEGMENT:
        if SegmentNumbers(digits + 1, buckets).files(pictures) > MOST_FILES:
            break
        digits += 1
    return SegmentNumbers(digits, buckets)


def outgrown(pictures: int, now: SegmentNumbers, then: SegmentNumbers) -> list[str]:
    """The reasons, in words with figures, for which a library should change its numbers to those proposed; none if it
    need not. Numbers that are larger than those proposed are a choice."""
    reasons = []
    if now.in_segment(pictures) > MOST_IN_SEGMENT and then.segment_digits > now.segment_digits:
        reasons.append(
            f"{now.in_segment(pictures):,} pictures are in each of {counted(now.segments, 'segment', 'segments')}, and "
            f"each picture more reads one again: SEGMENT_DIGITS={then.segment_digits} makes that "
            f"{then.in_segment(pictures):,} (`lookalike upgrade --sizes`)"
        )
    if now.in_bucket(pictures) > MOST_IN_BUCKET and then.buckets > now.buckets:
        reasons.append(
            f"{now.in_bucket(pictures):,} pictures are in each of {counted(now.buckets, 'bucket', 'buckets')} of "
            f"partition, and each picture more reads and writes one again: the overlay `large` makes that "
            f"{then.in_bucket(pictures):,} (`lookalike upgrade --overlay large`)"
        )
    return reasons
