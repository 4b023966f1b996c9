"""The decoders of picture files, one for each kind, with their limits and the corrections that they need.

Knows nothing of the later steps. The versions of Pillow and pi-heif, and so of the libraries inside of them, determine
the pixels of a file.
"""

from __future__ import annotations

import hashlib
import io
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pi_heif
from PIL import ExifTags, Image, ImageFile
from PIL.AvifImagePlugin import AvifImageFile
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import COMPRESSION, TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from stages.decode import jpeg_scans, raw_preview
from stages.record.file_kinds import FileKind
from stages.record.file_limits import (
    MAX_AVIF_PIXELS,
    MAX_HEIC_PIXELS,
    MAX_JPEG_2000_PIXELS,
    MAX_JPEG_PIXELS,
    MAX_JPEG_SCANNED_PIXELS,
    MAX_PIXELS,
    MAX_WEBP_PIXELS,
)
from stages.record.sources import LOSSLESS, LOSSY, PALETTE, RAW

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
}
_MOST_PIXELS = {
    FileKind.JPEG: MAX_JPEG_PIXELS,
    FileKind.WEBP: MAX_WEBP_PIXELS,
    FileKind.HEIC: MAX_HEIC_PIXELS,
    FileKind.AVIF: MAX_AVIF_PIXELS,
    FileKind.JPEG_2000: MAX_JPEG_2000_PIXELS,
    FileKind.RAW: MAX_JPEG_PIXELS,
}
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
ON_THEIR_SIDES = frozenset(_TURNS[orientation] for orientation in (5, 6, 7, 8))
"""The turns that exchange width and height."""

_LOSSY_COMPRESSIONS = frozenset((6, 7, 33003, 33005, 34712, 34892, 50001, 50002))  # TIFF: JPEG, JPEG 2000, WebP, XL
_WEBP_CHUNKS = 1 << 16  # bytes that the picture's chunk begins within: a profile may lie before it
_ENCODER_DIGITS = 8

# PNG gives the transparent sample value in the file's depth, but Pillow compares it at 8 bits.
_TRANSPARENT_TO_8_BITS = {
    "L;2": lambda value: value * 85,
    "L;4": lambda value: value * 17,
    "RGB;16B": lambda value: value >> 8,
}

_LONGEST_CAMERA = 80  # characters
_LONGEST_TEXT = 1000  # characters of one of EXIF's texts that are looked at

_EXIF_DATE = re.compile(r"(\d{4})[:-](\d\d)[:-](\d\d)[ T](\d\d):(\d\d):(\d\d)", re.ASCII)

pi_heif.options.THUMBNAILS = pi_heif.options.DEPTH_IMAGES = pi_heif.options.AUX_IMAGES = False  # not needed here


class BadPicture(Exception):
    """A picture that is rejected; the text is the reason for the user, the same for the same bytes."""


@dataclass(frozen=True)
class PictureFile:
    """The first, or primary, picture of a file, not decoded yet. coding, encoder: as in stages.record.sources.Source.
    orientation, date, make, model: those from outside it, if any."""

    picture: ImageFile.ImageFile
    coding: str
    encoder: str
    orientation: int | None = None
    date: str = ""
    make: str = ""
    model: str = ""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, before the picture is turned."""
        return self.picture.size

    def load(self, least: tuple[int, int]) -> tuple[Image.Image, Image.Transpose | None]:
        """Decodes the picture, a JPEG at the smallest scale that leaves it this size. Returns it with the turn that
        puts it upright. For damaged bytes, raises whatever the decoder raises."""
        picture = self.picture
        picture.draft(None, least)
        _fix_transparency(picture)
        box = picture.tile[0].extents if isinstance(picture, GifImageFile) and picture.tile else None
        picture.load()
        turn = _TURNS.get(_orientation(picture) if self.orientation is None else self.orientation)
        if box in (None, (0, 0, *picture.size)) or picture.has_transparency_data:
            return picture, turn
        # A first frame that does not cover its canvas: the rest is transparent, and Pillow gives it a colour.
        canvas = Image.new("RGB", picture.size, "white")
        canvas.paste(picture.convert("RGB").crop(box), box)
        return canvas, turn

    def taken(self) -> str:
        """The camera's date of a decoded picture: YYYY-MM-DDTHH:MM:SS, "" without a valid one."""
        return _date(self.date) or _date(_exif_date(self.picture))

    def camera(self) -> str:
        """The make and the model of a decoded picture's camera, "" without either."""
        return _camera(self.make, self.model) or _camera(*_exif_camera(self.picture))


def open_picture(data: bytes, kind: FileKind) -> PictureFile:
    """Opens a file of that kind.

    Raises BadPicture for one with too many pixels or none, and for a RAW file without a preview; for damaged bytes
    whatever the decoder raises.
    """
    orientation, date, make, model = None, "", "", ""
    if kind is FileKind.RAW:
        preview = raw_preview.preview(data)
        if preview is None:
            raise BadPicture("a RAW picture without a preview: save it as JPEG")
        data, orientation, date = preview.jpeg, preview.orientation, preview.date
        make, model = preview.make, preview.model
    picture = _DECODERS[kind](io.BytesIO(data))
    _check_size(picture, kind)
    if isinstance(picture, JpegImageFile):
        _check_scans(picture, data)
    return PictureFile(picture, _coding(picture, kind, data), _encoder(picture, kind), orientation, date, make, model)


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
    return LOSSLESS if isinstance(picture, PngImageFile | BmpImageFile) else LOSSY


def _check_size(picture: ImageFile.ImageFile, kind: FileKind) -> None:
    width, height = picture.size
    most = _MOST_PIXELS.get(kind, MAX_PIXELS)
    if width * height > most:
        raise BadPicture(f"{width:,} × {height:,} pixels: a {kind.value} picture may have at most {most:,}")
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


def _fix_transparency(picture: ImageFile.ImageFile) -> None:
    value = picture.info.get("transparency")
    if not isinstance(picture, PngImageFile) or value is None or not picture.tile:
        return
    to_8_bits = _TRANSPARENT_TO_8_BITS.get(str(picture.tile[0].args))
    if to_8_bits:
        fixed: Any = tuple(map(to_8_bits, value)) if isinstance(value, tuple) else to_8_bits(value)
        picture.info["transparency"] = fixed


def _orientation(picture: ImageFile.ImageFile) -> int:
    """The EXIF orientation of a decoded picture, as far as it is still to be applied.

    HEIC and AVIF have turns of their own, beside which EXIF's and XMP's do not count. The decoder of HEIC has applied
    them; that of AVIF reports them as EXIF. That of TIFF has applied the orientation and reports 1.
    """
    if isinstance(picture, pi_heif.HeifImageFile):
        return 1
    if isinstance(picture, AvifImageFile):
        picture.info.pop("xmp", None)
    try:
        return int(picture.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # the metadata are damaged, but the pixels are good
        return 1


def _exif_date(picture: ImageFile.ImageFile) -> str:
    try:
        return str(picture.getexif().get_ifd(ExifTags.IFD.Exif).get(ExifTags.Base.DateTimeOriginal, ""))
    except Exception:  # as above
        return ""


def _date(text: str) -> str:
    """A date of EXIF in ISO 8601. Cameras without a set clock, and some programs, write dates that are not valid."""
    found = _EXIF_DATE.match(text)
    if not found:
        return ""
    try:
        return datetime(*map(int, found.groups())).isoformat()  # type: ignore[arg-type]
    except ValueError:
        return ""


def _exif_camera(picture: ImageFile.ImageFile) -> tuple[str, str]:
    try:
        exif = picture.getexif()
        make, model = (exif.get(tag, "") for tag in (ExifTags.Base.Make, ExifTags.Base.Model))
    except Exception:  # as above
        return "", ""
    return make if isinstance(make, str) else "", model if isinstance(model, str) else ""


def _camera(make: str, model: str) -> str:
    """The make and the model in one text, without the make if the model begins with it, and cut if it is very long."""
    made, modelled = _printable(make), _printable(model)
    text = modelled if modelled.casefold().startswith(made.casefold()) else f"{made} {modelled}"
    return text[:_LONGEST_CAMERA].strip()


def _printable(text: str) -> str:
    """A text of EXIF, a character for each byte, without NULs, controls and spaces around it. It should be ASCII;
    cameras that write other characters write UTF-8."""
    try:
        content = text.encode("latin-1").decode()
    except UnicodeError:  # of another code
        content = text
    return "".join(each for each in content[:_LONGEST_TEXT] if each.isprintable()).strip()
