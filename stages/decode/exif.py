"""What the EXIF of a decoded picture says: its orientation, the date and the camera. Damaged metadata say nothing.

The one owner of orientation. Only EXIF turns a picture, as in browsers: the orientation that XMP may give does not.
"""

from __future__ import annotations

import re
from datetime import datetime

import pi_heif
from PIL import ExifTags, Image, ImageFile
from PIL.TiffImagePlugin import TiffImageFile

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

_PROFILE = "Raw profile type exif"  # where ImageMagick writes EXIF in PNG: hexadecimal, below three lines
_LONGEST_CAMERA = 80  # characters
_LONGEST_TEXT = 1000  # characters of one of EXIF's texts that are looked at
_DATE = re.compile(r"(\d{4})[:-](\d\d)[:-](\d\d)[ T](\d\d):(\d\d):(\d\d)", re.ASCII)


def forget_xmp(picture: ImageFile.ImageFile) -> None:
    """Drops the XMP of an opened picture, from which the decoder of TIFF would take an orientation."""
    for name in ("xmp", "XML:com.adobe.xmp"):
        picture.info.pop(name, None)


def turn(orientation: int) -> Image.Transpose | None:
    """What puts a picture of that orientation upright; None if it is, or if there is no such orientation."""
    return _TURNS.get(orientation)


def orientation(picture: ImageFile.ImageFile) -> int:
    """The EXIF orientation of a decoded picture, as far as it is still to be applied; 1 without one.

    HEIC and AVIF have turns of their own, beside which EXIF's does not count. The decoder of HEIC has applied them;
    that of AVIF reports them as EXIF. That of TIFF has applied the orientation and reports 1.
    """
    if isinstance(picture, pi_heif.HeifImageFile):
        return 1
    try:
        return int(_exif(picture).get(ExifTags.Base.Orientation, 1))
    except Exception:  # the metadata are damaged, but the pixels are good
        return 1


def date(picture: ImageFile.ImageFile) -> str:
    """The date on which a decoded picture was taken, as EXIF writes it; "" without one."""
    try:
        return str(_exif(picture).get_ifd(ExifTags.IFD.Exif).get(ExifTags.Base.DateTimeOriginal, ""))
    except Exception:  # as above
        return ""


def camera(picture: ImageFile.ImageFile) -> tuple[str, str]:
    """The make and the model of a decoded picture's camera, each "" without one."""
    try:
        exif = _exif(picture)
        make, model = (exif.get(tag, "") for tag in (ExifTags.Base.Make, ExifTags.Base.Model))
    except Exception:  # as above
        return "", ""
    return make if isinstance(make, str) else "", model if isinstance(model, str) else ""


def _exif(picture: ImageFile.ImageFile) -> Image.Exif:
    """Not that of `getexif`, which takes what EXIF lacks from XMP."""
    if isinstance(picture, TiffImageFile):
        return picture.getexif()
    profile = picture.info.get(_PROFILE)
    exif = Image.Exif()
    exif.load(picture.info.get("exif") or (bytes.fromhex("".join(profile.split("\n")[3:])) if profile else b""))
    return exif


def iso_date(text: str) -> str:
    """A date of EXIF in ISO 8601; "" for one that is not valid. Cameras without a set clock, and some programs, write
    such."""
    found = _DATE.match(text)
    if not found:
        return ""
    try:
        return datetime(*map(int, found.groups())).isoformat()  # type: ignore[arg-type]
    except ValueError:
        return ""


def camera_name(make: str, model: str) -> str:
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
