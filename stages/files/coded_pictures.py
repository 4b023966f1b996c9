"""Pictures as packs hold them, without the padding of their squares: drawings, pages and screens as lossless WebP
files, photographs as JPEG files that lose little.

What is compared is the picture that comes back, for the library and for queries alike, so that equal pictures have
equal vectors. Ids are those of the pixels before. Knows no packs.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image, ImageFile, JpegImagePlugin, WebPImagePlugin

from stages.record.framing import Framing, PictureSquare, Pixels, unpadded

QUALITY = 94
"""Of the JPEG files. This and the limits below are chosen in docs/decisions/coded-pictures-in-packs.md."""

_FLAT = 0.4  # the least share of pixels like the one before them in a picture that may be lossless
_SHARE = 7  # a lossless file has at most the bytes of the pixels, divided by this: what photographs take as JPEG
_FORMATS = JpegImagePlugin.JpegImageFile.format, WebPImagePlugin.WebPImageFile.format  # else Pillow imports all


def encode(picture: Pixels) -> bytes:
    """The file of a picture, uint8 (height, width, 3) RGB. Its bytes depend on the pixels, and on Pillow's libjpeg and
    libwebp, alone: both compute in integers, and so the same on every processor."""
    return _lossless(picture) or _lossy(picture, optimize=True)


def decode(coded: bytes, size: tuple[int, int], side: int) -> PictureSquare:
    """The picture in a file, in the middle of a square of `side` pixels. size: its (width, height). Raises ValueError
    or OSError for a file that `encode` did not make of such a picture."""
    with Image.open(io.BytesIO(coded), formats=_FORMATS) as opened:
        if opened.size != size or opened.mode != "RGB" or max(size) > side:
            raise ValueError(f"a picture of {opened.size} in {opened.mode}, and not of {size} in RGB")
        # The padding does not depend on how a picture fills its square.
        return Framing(side, "").frame(np.asarray(opened))


def compared(framed: PictureSquare) -> Pixels:
    """The pixels of a square, uint8 (side, side, 3), as they come back from a pack."""
    picture = np.ascontiguousarray(unpadded(framed))
    if _lossless(picture):
        return framed.pixels
    # Without optimised tables, in half of the time: they change the bytes and no pixel.
    return decode(_lossy(picture, optimize=False), framed.size, len(framed.pixels)).pixels


def _lossless(picture: Pixels) -> bytes:
    """The lossless file of a picture that takes one, else b""."""
    if _flatness(picture) < _FLAT:
        return b""
    coded = _saved(picture, "WEBP", lossless=True, method=0, quality=0)
    return coded if len(coded) * _SHARE <= picture.nbytes else b""


def _lossy(picture: Pixels, optimize: bool) -> bytes:
    # With optimised tables the whole file has to fit into Pillow's buffer, of one byte a pixel: too little for noise.
    ImageFile.MAXBLOCK = max(ImageFile.MAXBLOCK, picture.nbytes)
    return _saved(picture, "JPEG", quality=QUALITY, subsampling="4:4:4", optimize=optimize)


def _flatness(picture: Pixels) -> float:
    """The share of the pixels that are like the one before them, in the order of lines."""
    samples = picture.reshape(-1)
    alike = samples[3:] == samples[:-3]
    return np.count_nonzero(alike[::3] & alike[1::3] & alike[2::3]) / (len(samples) // 3)


def _saved(picture: Pixels, format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, format, **options)
    return file.getvalue()
