"""Decodes the bytes of a picture file to normalised pixels, and hashes these to an id. Knows no files and no archives.

Normalised: first frame, EXIF orientation applied, alpha over white, RGB, centre crop to a square, Lanczos to
side × side pixels. The steps and the decoder's options are part of the id's definition: changing one changes every id.
"""

from __future__ import annotations

import hashlib
import io
import struct
import warnings
from typing import Any

import numpy as np
from PIL import ExifTags, Image, ImageFile
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import PHOTOMETRIC_INTERPRETATION, TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from stages.kinds import Kind
from stages.limits import MAX_JPEG_PIXELS, MAX_PIXELS, MAX_WEBP_PIXELS
from stages.packs import Pixels

# Decoders by name, not Image.open, which tries every plugin and rejects a JPEG whose extra frames are damaged.
_DECODERS: dict[Kind, type[ImageFile.ImageFile]] = {
    Kind.JPEG: JpegImageFile,
    Kind.PNG: PngImageFile,
    Kind.WEBP: WebPImageFile,
    Kind.GIF: GifImageFile,
    Kind.BMP: BmpImageFile,
    Kind.TIFF: TiffImageFile,
}
_MOST_PIXELS = {Kind.JPEG: MAX_JPEG_PIXELS, Kind.WEBP: MAX_WEBP_PIXELS}
_GAP = 3  # a picture is first shrunk cheaply to at least this many times the side, then by Lanczos
_STRIP = 256  # rows converted at a time, so that a large picture is not in memory in three modes at once
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_WITHOUT_WHITE = {"I": "32-bit integer samples", "F": "floating-point samples", "LAB": "CIE L*a*b* colours"}
# PNG gives the transparent sample value in the file's depth, but Pillow compares it at 8 bits.
_TRANSPARENT_TO_8_BITS = {
    "L;2": lambda value: value * 85,
    "L;4": lambda value: value * 17,
    "RGB;16B": lambda value: value >> 8,
}


class BadPicture(Exception):
    """A picture that is rejected; the text is the reason for the user, the same for the same bytes."""


def picture_id(pixels: Pixels) -> str:
    """The id (64 hex) of normalised pixels, uint8 (H, W, 3): equal pictures have equal ids, whatever their source."""
    height, width, _ = pixels.shape
    return hashlib.sha256(b"lookalike-picture-1\0" + struct.pack(">II", height, width) + pixels.tobytes()).hexdigest()


def normalise(data: bytes, kind: Kind, side: int) -> Pixels:
    """Decodes the bytes of a picture file of that kind to uint8 (side, side, 3) RGB.

    Raises BadPicture for a damaged file, too many pixels, or samples without a defined white.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about odd metadata, which is harmless here
        try:
            return _normalise(data, kind, side)
        except (BadPicture, MemoryError):
            raise  # too little memory is the machine's fault: the datum fails, the picture is not rejected
        except Exception as failure:  # on hostile bytes decoders raise every kind of error
            unusual = ", or of an unusual kind: save it as PNG" if kind is Kind.TIFF else ""
            raise BadPicture(f"damaged or truncated {kind.value} picture{unusual}") from failure


def resize(pixels: Pixels, side: int) -> Pixels:
    """Square pixels, uint8 (n, n, 3) RGB, resized to side × side in the same way as a decoded picture."""
    return pixels if len(pixels) == side else _resized(Image.fromarray(pixels), side)


def _normalise(data: bytes, kind: Kind, side: int) -> Pixels:
    picture = _DECODERS[kind](io.BytesIO(data))
    _check_size(picture, kind)
    if isinstance(picture, JpegImageFile):
        picture.draft(None, (_GAP * side, _GAP * side))
    _fix_transparency(picture)
    picture.load()
    return _resized(_in_rgb(_square(_upright(picture))), side)


def _check_size(picture: ImageFile.ImageFile, kind: Kind) -> None:
    width, height = picture.size
    most = _MOST_PIXELS.get(kind, MAX_PIXELS)
    if width * height > most:
        raise BadPicture(f"{width:,} × {height:,} pixels: a {kind.value} picture may have at most {most:,}")
    if width < 1 or height < 1:
        raise BadPicture("a picture without pixels")


def _fix_transparency(picture: ImageFile.ImageFile) -> None:
    value = picture.info.get("transparency")
    if not isinstance(picture, PngImageFile) or value is None or not picture.tile:
        return
    to_8_bits = _TRANSPARENT_TO_8_BITS.get(str(picture.tile[0].args))
    if to_8_bits:
        fixed: Any = tuple(map(to_8_bits, value)) if isinstance(value, tuple) else to_8_bits(value)
        picture.info["transparency"] = fixed


def _upright(picture: ImageFile.ImageFile) -> Image.Image:
    """Applies the EXIF orientation. (For TIFF the decoder has applied it and reports 1.)"""
    try:
        turn = _TURNS.get(picture.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # the metadata are damaged, but the pixels are good
        turn = None
    return picture if turn is None else picture.transpose(turn)


def _square(picture: Image.Image) -> Image.Image:
    width, height = picture.size
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    return picture if width == height else picture.crop((left, top, left + side, top + side))


def _in_rgb(picture: Image.Image) -> Image.Image:
    if picture.mode == "RGB" and not picture.has_transparency_data:
        return picture
    if picture.mode in _WITHOUT_WHITE:
        raise BadPicture(f"{_WITHOUT_WHITE[picture.mode]} have no defined white: save it with 8 or 16 bits in RGB")
    width, height = picture.size
    rgb = Image.new("RGB", picture.size, "white")
    for top in range(0, height, _STRIP):
        strip = picture.crop((0, top, width, min(top + _STRIP, height)))
        if strip.mode.startswith("I;16"):
            strip = _from_16_bits(strip, picture)
        if strip.has_transparency_data:
            strip = strip.convert("RGBA")
            rgb.paste(strip, (0, top), strip)
        else:
            rgb.paste(strip.convert("RGB"), (0, top))
    return rgb


def _from_16_bits(strip: Image.Image, picture: Image.Image) -> Image.Image:
    """The high byte of each sample, as in the decoders for 16-bit RGB; white is 255 whatever the largest sample is."""
    samples = np.asarray(strip)
    grey = (samples >> 8).astype(np.uint8)
    if getattr(picture, "tag_v2", {}).get(PHOTOMETRIC_INTERPRETATION) == 0:
        grey = np.invert(grey)  # TIFF, white is zero
    transparent = strip.info.get("transparency")
    if transparent is not None:
        grey[samples == transparent] = 255
    return Image.fromarray(grey)


def _resized(square: Image.Image, side: int) -> Pixels:
    if square.size != (side, side):
        square = square.resize((side, side), Image.Resampling.LANCZOS, reducing_gap=float(_GAP))
    return np.asarray(square)
