"""The limits past which preprocess rejects a picture or an archive instead of reading it. Knows no formats.

Far above honest pictures and archives, and low enough that one datum stays below 1.5 GiB of memory.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_PICTURE_BYTES = 256 * 2**20  # of one picture's file, which is read into memory whole
MAX_PIXELS = 100_000_000  # width × height; RGBA takes 0.8 to 1.2 GiB
MAX_JPEG_PIXELS = 1_000_000_000  # 8 s; decoded at a scale at which it has no more than the next
MAX_WHOLE_JPEG_PIXELS = 210_000_000  # phones have 200 megapixels; a progressive one is in memory whole: 1.2 GiB
MAX_JPEG_SCANNED_PIXELS = 5_000_000_000  # pixels × scans: 8 s; 210 megapixels in 23 scans, cameras have 10
MAX_WEBP_PIXELS = 64_000_000  # its decoder holds three copies: 1 GiB
MAX_HEIC_PIXELS = 64_000_000  # 7 to 20 bytes each, by subsampling, depth and transparency: up to 1.2 GiB
MAX_AVIF_PIXELS = 64_000_000  # up to 17 bytes each: 1 GiB
MAX_JPEG_2000_PIXELS = 800_000_000  # decoded at a level at which it has no more than the next
MAX_WHOLE_JPEG_2000_PIXELS = 50_000_000  # up to 25 bytes each, since its samples are 32 bits wide: 1.2 GiB
MAX_TIFF_PIXELS = 400_000_000  # 10 s; above MAX_PIXELS decoded in pieces, each of which is shrunk at once
MAX_TIFF_PIECE_PIXELS = 50_000_000  # of a strip or a row of tiles, which is in memory whole
MAX_QOI_PIXELS = 16_000_000  # its decoder is not compiled: 20 s

MAX_MEMBERS = 1_000_000  # of one archive
MAX_HEADER_BYTES = 16 * 2**20  # of the descriptions of a tar's members, beside 4 KiB for each
MAX_ZIP_DIRECTORY_BYTES = 256 * 2**20
MIN_EXPANSION_BYTES = 2**30  # an archive may always expand to this much ...
MAX_EXPANSION = 10  # ... or to this many times its own size, whichever is more


@dataclass(frozen=True)
class FileLimits:
    """The limits on files and archives, in bytes but for the numbers of members. Tests pass smaller ones.

    kept_headers: the members of a tar whose descriptions are kept after the check, since reading them is expensive.
    """

    picture_bytes: int = MAX_PICTURE_BYTES
    members: int = MAX_MEMBERS
    header_bytes: int = MAX_HEADER_BYTES
    zip_directory_bytes: int = MAX_ZIP_DIRECTORY_BYTES
    min_expansion_bytes: int = MIN_EXPANSION_BYTES
    kept_headers: int = 4096

    def expansion(self, size: int) -> int:
        """How many bytes the members of an archive of `size` bytes may have together."""
        return max(self.min_expansion_bytes, MAX_EXPANSION * size)


LIMITS = FileLimits()
