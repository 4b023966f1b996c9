"""Decodes the bytes of a picture file to normalised pixels, and hashes these to an id. Knows no files and no archives.

Normalised: first frame, upright, alpha over white, RGB, Lanczos, and a square of one size, which the picture fills as
the framing says. The steps and the decoder's options are part of the id's definition: changing one changes every id.
"""

from __future__ import annotations

import hashlib
import math
import struct
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np
from PIL import Image
from PIL.TiffImagePlugin import PHOTOMETRIC_INTERPRETATION

from stages.decode import colour_profiles, decoders, exif, pixel_hash, raw_preview
from stages.decode.colour_profiles import ColourConversion
from stages.decode.decoders import BadPicture, PictureFile
from stages.decode.perceptual_hash import perceptual_hashes
from stages.decode.thumbnails import SIDE, thumbnail
from stages.files import coded_pictures
from stages.record.file_kinds import FileKind
from stages.record.framing import Framing, PictureSquare, Pixels
from stages.record.sources import LOSSLESS, RAW, Source

_GAP = 3  # a picture is first shrunk cheaply to at least this many times its size, then by Lanczos
_OF_MANY_KINDS = (FileKind.TIFF, FileKind.HEIC, FileKind.JPEG_2000)  # containers of more than their decoders read
_STRIP = 256  # rows converted at a time, so that a large picture is not in memory in three modes at once
_REDUCIBLE = ("L", "RGB", "CMYK")
_RECORD, _RECORDS = "record", "STL-10"  # the encoder and the format of squares
_WITHOUT_WHITE = {"I": "32-bit integer samples", "F": "floating-point samples", "LAB": "CIE L*a*b* colours"}


PictureRegion = tuple[float, float, float, float]
"""The left, top, right and bottom edges of a part of an upright picture, as shares of its width and height."""

DecodeGuard = Callable[[int], AbstractContextManager[None]]
"""Gives a context in which a picture of so many pixels is decoded."""


class PictureIdentity(NamedTuple):
    """id: that of `picture_id`. perceptual_hash: of the picture without padding, see stages.decode.perceptual_hash."""

    id: str
    perceptual_hash: int


class NormalisedPicture(NamedTuple):
    """A decoded picture. framed: normalised. facts: what decoding tells of its file, so without path, hash and bytes;
    pixels is "" without a thumbnail. coded: the picture for a pack, and thumbnail: of the same part, a JPEG file;
    b"" if they were not asked for, as they never are of a region. identity: None if it has not been computed."""

    framed: PictureSquare
    facts: Source
    coded: bytes = b""
    thumbnail: bytes = b""
    identity: PictureIdentity | None = None

    @property
    def size(self) -> tuple[int, int]:
        """The (width, height) of the picture in its file, upright."""
        return self.facts.width, self.facts.height


def picture_id(framed: PictureSquare) -> str:
    """The id (64 hex) of a normalised picture: equal pictures have equal ids, whatever their source.

    It covers the picture's size in its square, too, so that pictures with one id also look equal without the padding.
    """
    facts = struct.pack(">IIII", *framed.pixels.shape[:2], *framed.size)
    digest = hashlib.sha256(b"lookalike-picture-2\0" + facts)
    digest.update(np.ascontiguousarray(framed.pixels).data)
    return digest.hexdigest()


def _anywhere(_: int) -> AbstractContextManager[None]:
    return nullcontext()


def normalise(
    data: bytes,
    kind: FileKind,
    framing: Framing,
    region: PictureRegion | None = None,
    during: DecodeGuard = _anywhere,
    shown: bool = False,
) -> NormalisedPicture:
    """Decodes the bytes of a picture file of that kind, scales the picture, or a region of it, and frames it.

    shown: whether to code the picture for a pack, to make a thumbnail, and to hash the pixels at full size. The
    thumbnail shows what the framing keeps, and is smaller than stages.decode.thumbnails.SIDE only if the picture is, or
    if a JPEG was decoded at a smaller scale for squares of less than 80 pixels. Raises BadPicture for a damaged file,
    too many pixels, or samples without a defined white."""
    kind = FileKind.RAW if kind is FileKind.TIFF and raw_preview.is_raw(data) else kind
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about odd metadata, which is harmless here
        try:
            opened = decoders.open_picture(data, kind)
            width, height = opened.size
            with during(width * height):
                return _whole(data, opened, framing, shown) if region is None else _cut_out(opened, framing, region)
        except (BadPicture, MemoryError):
            raise  # too little memory is the machine's fault: the datum fails, the picture is not rejected
        except Exception as failure:  # on hostile bytes decoders raise every kind of error
            unusual = ", or of an unusual kind: save it as PNG" if kind in _OF_MANY_KINDS else ""
            raise BadPicture(f"damaged or truncated {kind.value} picture{unusual}") from failure


def reframe(squares: Pixels, framing: Framing) -> list[NormalisedPicture]:
    """Square pictures, uint8 (n, side, side, 3) RGB, scaled and framed in the same way as decoded ones, with thumbnails
    and identities."""
    side = squares.shape[1]
    column = Image.fromarray(squares.reshape(-1, side, 3))
    each = [column.crop((0, top, side, top + side)) for top in range(0, column.height, side)]
    size = framing.side, framing.side
    scaled = squares if side == framing.side else np.stack([_resized(picture, size) for picture in each])
    return [
        NormalisedPicture(
            framed := framing.frame(pixels),
            Source("", "", side, side, coding=LOSSLESS, encoder=_RECORD, format=_RECORDS),
            coded_pictures.encode(pixels),
            thumbnail(picture),
            PictureIdentity(picture_id(framed), hash),
        )
        for pixels, picture, hash in zip(scaled, each, perceptual_hashes(scaled), strict=True)
    ]


def _whole(data: bytes, opened: PictureFile, framing: Framing, shown: bool) -> NormalisedPicture:
    size = opened.size  # before a JPEG is decoded at a smaller scale
    hashed = shown and opened.coding != RAW and pixel_hash.is_whole(opened.picture)
    width, height = framing.scaled(size)
    picture, turn = opened.load(least=(_GAP * width, _GAP * height))
    scaled = picture.size != size
    upright = picture if turn is None else picture.transpose(turn)
    hashed &= picture is opened.picture
    colours = colour_profiles.conversion(opened.picture)
    pixels = pixel_hash.pixel_hash(data, opened.picture, upright, turn, scaled, colours) if hashed else ""
    if turn in exif.ON_THEIR_SIDES:
        width, height = height, width
        size = size[::-1]
    kept = framing.kept(upright.size)
    shown_part = upright if kept == (0, 0, *upright.size) else upright.crop(kept)
    rgb = _in_rgb(shown_part, opened, colours, enough=max(width, height, SIDE))
    resized = _resized(rgb, (width, height))
    coded, shown_as = (coded_pictures.encode(resized), thumbnail(rgb)) if shown else (b"", b"")
    return NormalisedPicture(framing.frame(resized), opened.facts(size, pixels), coded, shown_as)


def _cut_out(opened: PictureFile, framing: Framing, region: PictureRegion) -> NormalisedPicture:
    size = opened.size
    left, top, right, bottom = region
    share = min(right - left, bottom - top)
    enough = min(max(size), math.ceil(_GAP * framing.side / share))
    picture, turn = opened.load(least=(enough, enough))
    upright = picture if turn is None else picture.transpose(turn)
    if turn in exif.ON_THEIR_SIDES:
        size = size[::-1]
    width, height = upright.size
    begin = min(width - 1, math.floor(left * width)), min(height - 1, math.floor(top * height))
    end = max(begin[0] + 1, math.ceil(right * width)), max(begin[1] + 1, math.ceil(bottom * height))
    cut = upright.crop((*begin, *end))
    colours = colour_profiles.conversion(opened.picture)
    rgb = _in_rgb(cut.crop(framing.kept(cut.size)), opened, colours, enough=framing.side)
    return NormalisedPicture(framing.frame(_resized(rgb, framing.scaled(cut.size))), opened.facts(size))


def _in_rgb(picture: Image.Image, opened: PictureFile, colours: ColourConversion | None, enough: int) -> Image.Image:
    """Upright pixels of an opened file in sRGB, over white. Those of other colours are shrunk before their conversion,
    which takes time, to _GAP times the pixels of a side that are enough."""
    bits = opened.sample_bits()
    if picture.mode == "RGB" and not picture.has_transparency_data and colours is None:
        return picture
    if picture.mode in _WITHOUT_WHITE and bits is None:
        raise BadPicture(f"{_WITHOUT_WHITE[picture.mode]} have no defined white: save it with 8 or 16 bits in RGB")
    factor = max(1, min(picture.size) // (_GAP * enough))
    if colours and factor > 1 and picture.mode in _REDUCIBLE and not picture.has_transparency_data:
        picture = picture.reduce(factor)
    width, height = picture.size
    rgb = Image.new("RGB", picture.size, "white")
    for top in range(0, height, _STRIP):
        strip = picture.crop((0, top, width, min(top + _STRIP, height)))
        if bits is not None:
            strip = _from_more_bits(strip, opened.picture, bits)
        _paste(rgb, strip, top, colours)
    return rgb


def _paste(rgb: Image.Image, strip: Image.Image, top: int, colours: ColourConversion | None) -> None:
    alpha = strip.convert("RGBA").getchannel("A") if strip.has_transparency_data else None
    rgb.paste(strip.convert("RGB") if colours is None else colours.srgb(strip), (0, top), alpha)


def _from_more_bits(strip: Image.Image, picture: Image.Image, bits: int) -> Image.Image:
    """The highest 8 bits of each grey sample, as in the decoders for 16-bit RGB; white is 255 whatever the largest
    sample is."""
    samples = np.asarray(strip)
    grey = np.minimum(samples >> (bits - 8), 255).astype(np.uint8)
    if getattr(picture, "tag_v2", {}).get(PHOTOMETRIC_INTERPRETATION) == 0:
        grey = np.invert(grey)  # TIFF, white is zero
    transparent = strip.info.get("transparency")
    if transparent is not None:
        grey[samples == transparent] = 255
    return Image.fromarray(grey)


def _resized(picture: Image.Image, size: tuple[int, int]) -> Pixels:
    if picture.size != size:
        picture = picture.resize(size, Image.Resampling.LANCZOS, reducing_gap=float(_GAP))
    return np.asarray(picture)
