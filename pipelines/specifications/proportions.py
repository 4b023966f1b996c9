"""The numbers that grow with a library: the segments of its index, and the pictures of a part and of a block. Pure.

More segments make a picture more cheap, since its segment is read and written again; and a search dear, since each
segment is a datum. features writes files for each part and segment, so parts have to grow with the segments, or the
library becomes millions of small files. And a part is computed at once: one changed picture of a block computes it all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from stages.parts import PART
from stages.wording import counted

DIGITS = "SEGMENT_DIGITS"
"""The variable of features with the digits of a segment; that of parts is stages.parts.VARIABLE."""

MOST_IN_SEGMENT = 16**4
"""The most pictures of a segment: at 224 pixels with vectors of 1,280 numbers 0.9 GB, which one more picture reads and
writes again."""

MOST_FILES = 0.15
"""The most files a picture that features should write; a million pictures are 150,000."""

_FILES = 3
"""The files that features writes for each part and segment."""

_PART_OF_SEGMENTS = PART // 16
"""The pictures of a part for each segment: those of the defaults, 0.12 files a picture."""

_MOST_PART_BYTES = 1 << 30
"""The most bytes of a part's pixels, and of the files in a block: a datum is moved whole, and computed again whole."""

MOST_DIGITS = 8
"""The most hex digits of an id that features takes."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """segment_digits: the hex digits of an id that make a segment. part: the pictures of a part, and of a block."""

    segment_digits: int
    part: int

    @property
    def segments(self) -> int:
        """The number of segments."""
        return int(16**self.segment_digits)

    @property
    def files(self) -> float:
        """The files a picture that features writes on average for full parts."""
        filled = self.segments * (1 - (1 - 1 / self.segments) ** self.part)
        return _FILES * filled / self.part

    def in_segment(self, pictures: int) -> int:
        """The pictures of a segment of a library."""
        return -(-pictures // self.segments)


def proposed(pictures: int, side: int, file_bytes: float = 0.0) -> Numbers:
    """The numbers for a library of so many pictures.

    side: of the normalised pictures, in pixels. file_bytes: the mean size of a picture's file.
    """
    digits = next(
        each for each in range(1, MOST_DIGITS + 1) if pictures <= MOST_IN_SEGMENT * 16**each or each == MOST_DIGITS
    )
    wanted = part_of(digits)
    room = int(_MOST_PART_BYTES / max(3 * side**2, file_bytes))
    return Numbers(digits, max(PART, min(wanted, room // PART * PART)))


def part_of(segment_digits: int) -> int:
    """The pictures of a part for so many segments, whatever their size."""
    return int(_PART_OF_SEGMENTS * 16**segment_digits)


def outgrown(pictures: int, now: Numbers, then: Numbers) -> list[str]:
    """The reasons, in words with figures, for which a library should change its numbers to those proposed; none if it
    need not. Numbers that are larger than those proposed are a choice."""
    return [*_of_segments(pictures, now, then), *_of_parts(pictures, now, then)]


def _of_segments(pictures: int, now: Numbers, then: Numbers) -> Iterator[str]:
    if now.in_segment(pictures) > MOST_IN_SEGMENT and then.segment_digits > now.segment_digits:
        yield (
            f"{now.in_segment(pictures):,} pictures are in each of {counted(now.segments, 'segment', 'segments')}, and "
            f"each picture more reads and writes one again: SEGMENT_DIGITS={then.segment_digits} makes that "
            f"{then.in_segment(pictures):,}"
        )


def _of_parts(pictures: int, now: Numbers, then: Numbers) -> Iterator[str]:
    after = Numbers(max(now.segment_digits, then.segment_digits), now.part)
    better = Numbers(after.segment_digits, then.part)
    if after.files > MOST_FILES and then.part > now.part:
        yield (
            f"{after.files * pictures:,.0f} files of features for {counted(pictures, 'picture', 'pictures')} are "
            f"{after.files:.2f} a picture with parts of {now.part:,} and {after.segments:,} segments: PART={then.part} "
            f"makes that {better.files:.2f}"
        )
