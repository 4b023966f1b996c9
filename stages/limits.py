"""What one input may cost: the limits past which preprocess rejects a thing instead of reading it. Knows no formats.

Far above honest pictures and archives, and low enough that one datum stays below 1.5 GiB of memory.
"""

from __future__ import annotations

MAX_PICTURE_BYTES = 256 * 2**20  # of one picture's file, which is read into memory whole
MAX_PIXELS = 100_000_000  # width × height; RGBA takes 0.8 to 1.2 GiB
MAX_JPEG_PIXELS = 210_000_000  # telephones have 200 megapixels; decoded at a reduced scale: 1.2 GiB if progressive
MAX_WEBP_PIXELS = 64_000_000  # its decoder holds three copies: 1 GiB

MAX_MEMBERS = 1_000_000  # of one archive
MAX_HEADER_BYTES = 16 * 2**20  # of the descriptions of a tar's members, beside 4 KiB for each
MAX_ZIP_DIRECTORY_BYTES = 256 * 2**20
MIN_EXPANSION_BYTES = 2**30  # an archive may always expand to this much ...
MAX_EXPANSION = 10  # ... or to this many times its own size, whichever is more


def expansion_limit(size: int) -> int:
    """How many bytes the members of an archive of `size` bytes may have together."""
    return max(MIN_EXPANSION_BYTES, MAX_EXPANSION * size)
