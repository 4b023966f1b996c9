"""What the EXIF of a decoded picture says: its orientation, and the camera's notes. Damaged metadata say nothing.

The one owner of orientation. Only EXIF turns a picture, as in browsers: the orientation that XMP may give does not.
"""

from __future__ import annotations

from typing import Any

import pi_heif
from PIL import ExifTags, Image, ImageFile
from PIL.TiffImagePlugin import TiffImageFile

from stages.decode.camera_notes import NO_NOTES, CameraNotes

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
_OF_PICTURE, _OF_PLACE = ExifTags.IFD.Exif, ExifTags.IFD.GPSInfo
_NOTES = (  # the directory and the tag of each field of CameraNotes
    (_OF_PICTURE, ExifTags.Base.DateTimeOriginal),
    (None, ExifTags.Base.Make),
    (None, ExifTags.Base.Model),
    (_OF_PICTURE, ExifTags.Base.LensModel),
    (_OF_PLACE, ExifTags.GPS.GPSLatitudeRef),
    (_OF_PLACE, ExifTags.GPS.GPSLatitude),
    (_OF_PLACE, ExifTags.GPS.GPSLongitudeRef),
    (_OF_PLACE, ExifTags.GPS.GPSLongitude),
)


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


def notes(picture: ImageFile.ImageFile) -> CameraNotes:
    """What the camera wrote about a decoded picture, as far as it can be read."""
    try:
        exif = _exif(picture)
    except Exception:  # as above
        return NO_NOTES
    found: list[Any] = []
    for (directory, tag), missing in zip(_NOTES, NO_NOTES, strict=True):
        try:
            found.append((exif.get_ifd(directory) if directory else exif).get(tag, missing))
        except Exception:  # as above
            found.append(missing)
    return CameraNotes(*found)


def _exif(picture: ImageFile.ImageFile) -> Image.Exif:
    """Not that of `getexif`, which takes what EXIF lacks from XMP."""
    if isinstance(picture, TiffImageFile):
        return picture.getexif()
    profile = picture.info.get(_PROFILE)
    exif = Image.Exif()
    exif.load(picture.info.get("exif") or (bytes.fromhex("".join(profile.split("\n")[3:])) if profile else b""))
    return exif
