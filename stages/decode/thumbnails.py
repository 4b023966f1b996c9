"""Thumbnails: small JPEG files of pictures, for pages and for trainings.

One shows the part of a picture that is compared, from the decoded file and without padding. So it does not follow from
the id: see stages.record.sources.chosen. Knows no files and no decoders.
"""

from __future__ import annotations

import io

from PIL import Image

from stages.record.framing import PAD, Framing

SIDE = 240
"""Most pixels of the longer side. Smaller pictures keep their size."""

_QUALITY = 85
_GAP = 1.0  # the cheap first step goes as far as it can: half of the time, and no more to be seen than JPEG adds


def thumbnail(picture: Image.Image) -> bytes:
    """The JPEG file of a picture in RGB. Its bytes depend on the pixels, and on Pillow's libjpeg, alone."""
    if max(picture.size) > SIDE:
        size = Framing(SIDE, PAD).scaled(picture.size)
        bare = picture.resize(size, Image.Resampling.LANCZOS, reducing_gap=_GAP)
    elif picture.info or type(picture) is not Image.Image:
        bare = picture.copy()  # without its format, and leaving the caller's facts alone
    else:
        bare = picture
    bare.info = {}  # without the comments and profiles of its file
    file = io.BytesIO()
    bare.save(file, "JPEG", quality=_QUALITY, subsampling="4:2:0", optimize=True, progressive=False)
    return file.getvalue()
