"""The decoders of picture files, one for each kind, with their limits and the corrections that they need.

Knows nothing of the later steps. The versions of Pillow and pi-heif, and so of the libraries inside of them, determine
the pixels of a file.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pi_heif
from PIL import Image, ImageFile
from PIL.AvifImagePlugin import AvifImageFile
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.IcoImagePlugin import IcoImageFile
from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.PpmImagePlugin import PpmImageFile
from PIL.QoiImagePlugin import QoiImageFile
from PIL.TgaImagePlugin import TgaImageFile
from PIL.TiffImagePlugin import BITSPERSAMPLE, COMPRESSION, PLANAR_CONFIGURATION, TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from stages.decode import colour_profiles, exif, icons, jpeg_scans, png_chunks, raw_preview, tiff_pieces
from stages.decode.camera_notes import NO_NOTES, CameraNotes
from stages.decode.tiff_pieces import TiffPage
from stages.record.file_kinds import HEAD, FileKind, kind_of
from stages.record.file_limits import (
    MAX_AVIF_PIXELS,
    MAX_HEIC_PIXELS,
    MAX_JPEG_2000_PIXELS,
    MAX_JPEG_PIXELS,
    MAX_JPEG_SCANNED_PIXELS,
    MAX_PIXELS,
    MAX_QOI_PIXELS,
    MAX_TIFF_PIXELS,
    MAX_WEBP_PIXELS,
    MAX_WHOLE_JPEG_2000_PIXELS,
    MAX_WHOLE_JPEG_PIXELS,
)
from stages.record.sources import LOSSLESS, LOSSY, PALETTE, RAW, Source

# Decoders by name, not Image.open, which tries every plugin and rejects a JPEG whose extra frames are damaged.
_DECODERS: dict[FileKind, type[ImageFile.ImageFile]] = {
    FileKind.JPEG: JpegImageFile,
    FileKind.PNG: PngImageFile,
    FileKind.WEBP: WebPImageFile,
    FileKind.GIF: GifImageFile,
    FileKind.BMP: BmpImageFile,
    FileKind.TIFF: TiffImageFile,
    FileKind.HEIC: pi_heif.HeifImageFile,
    FileKind.AVIF: AvifImageFile,
    FileKind.JPEG_2000: Jpeg2KImageFile,
    FileKind.RAW: JpegImageFile,
    FileKind.NETPBM: PpmImageFile,
    FileKind.TGA: TgaImageFile,
    FileKind.ICO: IcoImageFile,
    FileKind.QOI: QoiImageFile,
}
_MOST_PIXELS = {
    FileKind.JPEG: MAX_JPEG_PIXELS,
    FileKind.WEBP: MAX_WEBP_PIXELS,
    FileKind.HEIC: MAX_HEIC_PIXELS,
    FileKind.AVIF: MAX_AVIF_PIXELS,
    FileKind.JPEG_2000: MAX_JPEG_2000_PIXELS,
    FileKind.RAW: MAX_WHOLE_JPEG_PIXELS,
    FileKind.QOI: MAX_QOI_PIXELS,
}
_WHOLE_PIXELS = {FileKind.JPEG: MAX_WHOLE_JPEG_PIXELS, FileKind.JPEG_2000: MAX_WHOLE_JPEG_2000_PIXELS}
_LOSSLESS_FILES = (PngImageFile, BmpImageFile, PpmImageFile, TgaImageFile, IcoImageFile, QoiImageFile)
_LOSSY_COMPRESSIONS = frozenset((6, 7, 33003, 33005, 34712, 34892, 50001, 50002))  # TIFF: JPEG, JPEG 2000, WebP, XL
_WEBP_CHUNKS = 1 << 16  # bytes that the picture's chunk begins within: a profile may lie before it
_ENCODER_DIGITS = 8
_CONTINUATIONS = tuple(
    bytes([first << 5]) + hashlib.shake_128(bytes([first])).digest(64).replace(b"\xff", b"") for first in range(8)
)
"""Samples of JPEG that mean nothing, and begin with each three bits."""
_MAX_SAMPLE_VALUE, _SEPARATE_PLANES = 281, 2  # TIFF: a tag, and a value of PlanarConfiguration
_IN_PLANES = frozenset(("RGB", "RGBA", "CMYK"))  # modes that Pillow reads from separate planes of 8 bits

# PNG gives the transparent sample value in the file's depth, but Pillow compares it at 8 bits.
_TRANSPARENT_TO_8_BITS = {
    "L;2": lambda value: value * 85,
    "L;4": lambda value: value * 17,
    "RGB;16B": lambda value: value >> 8,
}

pi_heif.options.THUMBNAILS = pi_heif.options.DEPTH_IMAGES = pi_heif.options.AUX_IMAGES = False  # not needed here


class BadPicture(Exception):
    """A picture that is rejected; the text is the reason for the user, the same for the same bytes."""


@dataclass(frozen=True)
class PictureFile:
    """The first, or primary, picture of a file, not decoded yet. coding, encoder: as in stages.record.sources.Source.
    format: the name of the file's kind. orientation, notes: those from outside it, if any. unended: the file if it is a
    JPEG without an end. pages: of a TIFF that is too large to be decoded whole."""

    picture: ImageFile.ImageFile
    coding: str
    encoder: str
    format: str
    orientation: int | None = None
    notes: CameraNotes = NO_NOTES
    unended: bytes = b""
    pages: Sequence[TiffPage] = ()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, before the picture is turned."""
        return self.picture.size

    def load(self, least: tuple[int, int]) -> tuple[Image.Image, Image.Transpose | None]:
        """Decodes the picture, a JPEG or a large TIFF at the smallest scale that leaves it this size. Returns it with
        the turn that puts it upright. For damaged bytes, raises whatever the decoder raises."""
        picture = self.picture
        if self.pages:
            return tiff_pieces.shrunk(self.pages, least, exif.turn(exif.orientation(picture))), None
        if self.unended:
            _check_samples(self.unended)
        _choose_scale(picture, least)
        _fix_transparency(picture)
        box = picture.tile[0].extents if isinstance(picture, GifImageFile) and picture.tile else None
        picture.load()
        turn = exif.turn(exif.orientation(picture) if self.orientation is None else self.orientation)
        if box in (None, (0, 0, *picture.size)) or picture.has_transparency_data:
            return picture, turn
        # A first frame that does not cover its canvas: the rest is transparent, and Pillow gives it a colour.
        canvas = Image.new("RGB", picture.size, "white")
        canvas.paste(picture.convert("RGB").crop(box), box)
        return canvas, turn

    def facts(self, size: tuple[int, int], pixels: str = "") -> Source:
        """What a decoded picture's file tells, without its path, hash and bytes. size, pixels: of the upright picture.
        What was written outside of the picture comes before the same in it."""
        told = self.notes, exif.notes(self.picture)
        latitude, longitude = next((each.place for each in told if each.place), (None, None))
        return Source(
            "",
            "",
            *size,
            taken=told[0].taken or told[1].taken,
            coding=self.coding,
            encoder=self.encoder,
            pixels=pixels,
            camera=told[0].camera or told[1].camera,
            lens=told[0].lens or told[1].lens,
            latitude=latitude,
            longitude=longitude,
            format=self.format,
        )

    def sample_bits(self) -> int | None:
        """The bits of a sample that is white in grey of more than 8 bits; None for 8 bits, and where no sample is."""
        picture = self.picture
        if isinstance(picture, TiffImageFile) and picture.mode.startswith("I;16"):
            return 12 if _bits(picture) == 12 else _bits_in_use(picture)
        deep = picture.mode.startswith("I;16") or (picture.mode == "I" and isinstance(picture, PpmImageFile))
        return 16 if deep else None


def open_picture(data: bytes, kind: FileKind) -> PictureFile:
    """Opens a file of that kind.

    Raises BadPicture for one with too many pixels or none, and for a RAW file without a preview; for damaged bytes
    whatever the decoder raises.
    """
    orientation, notes, format = None, NO_NOTES, kind.value
    if kind is FileKind.RAW:
        preview = raw_preview.preview(data)
        if preview is None:
            raise BadPicture("a RAW picture without a preview: save it as JPEG")
        data, orientation, notes = preview.jpeg, preview.orientation, preview.notes
    elif kind is FileKind.ICO:
        icon = icons.largest(data)
        if icon is None:
            raise BadPicture("damaged or truncated icon")
        data, kind = icon, kind_of(icon[:HEAD])
    if kind in (FileKind.JPEG, FileKind.RAW):
        jpeg_scans.check_headers(data)
    unended = data if kind is FileKind.JPEG and jpeg_scans.lacks_end(data) else b""
    readable = png_chunks.readable(data) if kind is FileKind.PNG else data
    picture = _DECODERS[kind](io.BytesIO(readable + jpeg_scans.END if unended else readable))
    exif.forget_xmp(picture)
    if kind is FileKind.AVIF:
        picture.info.update(colour_profiles.nclx(data))
    pages = tiff_pieces.pages(data, picture) if isinstance(picture, TiffImageFile) else ()
    if not pages:
        _check_size(picture, kind, len(data))
    if isinstance(picture, JpegImageFile):
        _check_scans(picture, data)
    if isinstance(picture, TiffImageFile):
        _check_layout(picture)
    facts = _coding(picture, kind, data), _encoder(picture, kind)
    return PictureFile(picture, *facts, format, orientation, notes, unended, pages)


def _choose_scale(picture: ImageFile.ImageFile, least: tuple[int, int]) -> None:
    """Lets a picture be decoded at the smallest scale that leaves it this size, if it is a JPEG, and at one that its
    decoder has memory for."""
    width, height = picture.size
    if isinstance(picture, JpegImageFile):
        fits = next((each for each in (1, 2, 4) if width * height <= MAX_WHOLE_JPEG_PIXELS * each**2), 8)
        picture.draft(None, (min(least[0], width // fits), min(least[1], height // fits)))
    elif isinstance(picture, Jpeg2KImageFile):
        picture.reduce = next(each for each in range(32) if width * height <= MAX_WHOLE_JPEG_2000_PIXELS * 4**each)


def _encoder(picture: ImageFile.ImageFile, kind: FileKind) -> str:
    facts: list[Any] = [kind.name, picture.mode, [tile.args for tile in picture.tile]]
    if isinstance(picture, JpegImageFile):
        facts = [kind.name, sorted(picture.quantization.items()), picture.layer, "progression" in picture.info]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:_ENCODER_DIGITS]


def _coding(picture: ImageFile.ImageFile, kind: FileKind, data: bytes) -> str:
    if kind is FileKind.RAW:
        return RAW
    if picture.mode in ("P", "PA"):
        return PALETTE
    if isinstance(picture, TiffImageFile):
        return LOSSY if picture.tag_v2.get(COMPRESSION, 1) in _LOSSY_COMPRESSIONS else LOSSLESS
    if isinstance(picture, WebPImageFile):
        return LOSSLESS if b"VP8L" in data[:_WEBP_CHUNKS] else LOSSY
    return LOSSLESS if isinstance(picture, _LOSSLESS_FILES) else LOSSY


def _check_size(picture: ImageFile.ImageFile, kind: FileKind, size: int) -> None:
    width, height = picture.size
    most = _MOST_PIXELS.get(kind, MAX_PIXELS)
    # Real pictures have more than a byte for each 64 pixels; others would keep a decoder busy for nothing.
    if kind in _WHOLE_PIXELS and ("progression" in picture.info or size * 64 < width * height):
        most = _WHOLE_PIXELS[kind]
    if width * height > most:
        pieces = f", or {MAX_TIFF_PIXELS:,} in small strips or tiles" if kind is FileKind.TIFF else ""
        raise BadPicture(f"{width:,} × {height:,} pixels: a {kind.value} picture may have at most {most:,}{pieces}")
    if width < 1 or height < 1:
        raise BadPicture("a picture without pixels")


def _check_scans(picture: JpegImageFile, data: bytes) -> None:
    pixels = picture.size[0] * picture.size[1]
    if jpeg_scans.at_most(data) * pixels <= MAX_JPEG_SCANNED_PIXELS:
        return
    scans = jpeg_scans.count(data)
    if scans * pixels > MAX_JPEG_SCANNED_PIXELS:
        most = max(1, MAX_JPEG_SCANNED_PIXELS // pixels)
        raise BadPicture(f"a JPEG picture of {scans:,} scans: one of this size may have at most {most:,}")


def _check_samples(unended: bytes) -> None:
    """Raises OSError unless all samples of a JPEG without its end are there: what would follow then changes none."""
    continued = (unended + each + jpeg_scans.END for each in _CONTINUATIONS)
    if len({hashlib.sha256(JpegImageFile(io.BytesIO(each)).tobytes()).digest() for each in continued}) > 1:
        raise OSError("samples are missing")


def _check_layout(picture: TiffImageFile) -> None:
    """Raises BadPicture for the samples that Pillow reads wrongly without a word."""
    deep = _bits(picture) > 8
    in_planes = picture.tag_v2.get(PLANAR_CONFIGURATION) == _SEPARATE_PLANES and len(picture.getbands()) > 1
    if in_planes and (deep or picture.mode not in _IN_PLANES):
        raise BadPicture("a TIFF picture in separate planes of an unusual kind: save it as PNG")
    bits = _bits_in_use(picture)
    if deep and bits != 16 and not picture.mode.startswith("I;16"):
        raise BadPicture(f"a TIFF picture of {bits} bits in 16: save it with all 16 bits in use, or as PNG")


def _bits(picture: TiffImageFile) -> int:
    return int(max(picture.tag_v2.get(BITSPERSAMPLE, (1,))))


def _bits_in_use(picture: TiffImageFile) -> int:
    """Of 16: the bits of MaxSampleValue, if it is the largest value of so many; otherwise it is no more than the
    brightest of these samples."""
    bands = len(picture.getbands())
    stated = picture.tag_v2.get(_MAX_SAMPLE_VALUE, 0xFFFF)
    largest = stated if isinstance(stated, tuple) else (stated,) * bands
    bits = int(max(largest)).bit_length()
    return bits if 8 < bits < 16 and largest == ((1 << bits) - 1,) * bands else 16


def _fix_transparency(picture: ImageFile.ImageFile) -> None:
    value = picture.info.get("transparency")
    if not isinstance(picture, PngImageFile) or value is None or not picture.tile:
        return
    to_8_bits = _TRANSPARENT_TO_8_BITS.get(str(picture.tile[0].args))
    if to_8_bits:
        fixed: Any = tuple(map(to_8_bits, value)) if isinstance(value, tuple) else to_8_bits(value)
        picture.info["transparency"] = fixed
