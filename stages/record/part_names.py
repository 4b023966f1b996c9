"""The names of parts: features' units of work, as preprocess divides a datum's pictures. Only the standard library."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

PART = 400
"""About how many pictures make a part by default: as many as a block of `lookalike add` then holds at most, and whole
batches of a model."""

VARIABLE = "PART"
"""The variable of preprocess with another number, for which `lookalike add` makes larger blocks."""

MOST = 1_000_000
"""The largest such number."""

BUCKETS = 64
"""By default the number of parts that shared the lone pictures, until preprocess-15."""

MOST_DIGITS = 8
"""The most hex digits of an id that make a segment."""


def source_name(repo_path: str) -> str:
    """The name of a datum's packs: 16 hex digits of the sha256 of the datum's path in its repo."""
    return hashlib.sha256(repo_path.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def bucket(digits: str, buckets: int) -> str:
    """The bucket of a hash, in hex digits. Every bucket has an equal range of hashes."""
    number = int(digits[:4], 16) * buckets // 16**4
    return f"{number:0{len(f'{buckets - 1:x}')}x}"


def directory(part: str) -> str:
    """The bucket of a part, as two levels of directories, 64 and in each of them 16, by a hash of its source's name: so
    a glob takes a 64th of all parts, or a 1,024th, and all parts of a datum are in one bucket."""
    digest = hashlib.sha256(source_of(part).encode("ascii")).digest()
    return f"{digest[0] >> 2:02x}/{digest[1] >> 4:x}"


def digits(pictures: int, part: int = PART) -> int:
    """The number of hex digits that divide so many pictures into parts of that size."""
    return next(digits for digits in range(16) if pictures <= part * 16**digits)


def name(source: str, prefix: str) -> str:
    """The part of a datum's pictures whose ids have the prefix. source: see `source_name`."""
    return ".".join(filter(None, (source, prefix)))


def source_of(part: str) -> str:
    """The name of the packs of a part, see `source_name`."""
    return part.partition(".")[0]


def possible(source: str, picture: str, buckets: int) -> Iterator[str]:
    """The parts in which a picture of a datum can be: of up to about PART pictures, of thousands, and those of earlier
    versions. buckets: see BUCKETS."""
    yield name(source, "")
    yield from (name(source, picture[:length]) for length in range(1, 4))
    yield bucket(picture, buckets)
    yield from (f"{source}-{picture[:length]}" for length in range(1, 4))
