"""Decodes the bytes of a picture file to normalised pixels, and hashes these to an id. Knows no files and no archives.

Normalised: first frame, upright, alpha over white, RGB, centre crop to a square, Lanczos to
side × side pixels. The steps and the decoder's options are part of the id's definition: changing one changes every id.
"""

from __future__ import annotations

import hashlib
import struct
import warnings

import numpy as np
from PIL import Image
from PIL.TiffImagePlugin import PHOTOMETRIC_INTERPRETATION

from stages import decoders, raw
from stages.decoders import BadPicture
from stages.kinds import Kind
from stages.packs import Pixels

_GAP = 3  # a picture is first shrunk cheaply to at least this many times the side, then by Lanczos
_OF_MANY_KINDS = (Kind.TIFF, Kind.HEIC, Kind.JPEG_2000)  # containers of more than their decoders read
_STRIP = 256  # rows converted at a time, so that a large picture is not in memory in three modes at once
_WITHOUT_WHITE = {"I": "32-bit integer samples", "F": "floating-point samples", "LAB": "CIE L*a*b* colours"}


def picture_id(pixels: Pixels) -> str:
    """The id (64 hex) of normalised pixels, uint8 (H, W, 3): equal pictures have equal ids, whatever their source."""
    height, width, _ = pixels.shape
    return hashlib.sha256(b"lookalike-picture-1\0" + struct.pack(">II", height, width) + pixels.tobytes()).hexdigest()


def normalise(data: bytes, kind: Kind, side: int) -> Pixels:
    """Decodes the bytes of a picture file of that kind to uint8 (side, side, 3) RGB.

    Raises BadPicture for a damaged file, too many pixels, or samples without a defined white.
    """
    kind = Kind.RAW if kind is Kind.TIFF and raw.is_raw(data) else kind
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about odd metadata, which is harmless here
        try:
            return _normalise(data, kind, side)
        except (BadPicture, MemoryError):
            raise  # too little memory is the machine's fault: the datum fails, the picture is not rejected
        except Exception as failure:  # on hostile bytes decoders raise every kind of error
            unusual = ", or of an unusual kind: save it as PNG" if kind in _OF_MANY_KINDS else ""
            raise BadPicture(f"damaged or truncated {kind.value} picture{unusual}") from failure


def resize(pixels: Pixels, side: int) -> Pixels:
    """Square pixels, uint8 (n, n, 3) RGB, resized to side × side in the same way as a decoded picture."""
    return pixels if len(pixels) == side else _resized(Image.fromarray(pixels), side)


def _normalise(data: bytes, kind: Kind, side: int) -> Pixels:
    picture, turn = decoders.opened(data, kind).load(least=(_GAP * side, _GAP * side))
    return _resized(_in_rgb(_square(picture if turn is None else picture.transpose(turn))), side)


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
