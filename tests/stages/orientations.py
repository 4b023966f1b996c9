"""The eight orientations of EXIF: the value, and pixels as a camera stores them with it; and what else it notes."""

import struct
from collections.abc import Sequence

import numpy as np
from PIL import ExifTags, Image
from PIL.TiffImagePlugin import IFDRational

from stages.record.framing import Pixels


def stored(upright: Pixels, orientation: int) -> Image.Image:
    """The picture that becomes this upright one, uint8 (height, width, bands), when the orientation is applied."""
    pixels = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(upright, 3),
    }[orientation]
    return Image.fromarray(np.ascontiguousarray(pixels))


def exif(orientation: int) -> Image.Exif:
    """EXIF with the orientation alone."""
    made = Image.Exif()
    made[0x0112] = orientation
    return made


def dated(date: str, orientation: int = 1) -> bytes:
    """EXIF with the date on which a camera took the picture."""
    made = exif(orientation)
    made.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = date
    return made.tobytes()


def shot_at(
    latitude: Sequence[tuple[int, int]],
    longitude: Sequence[tuple[int, int]],
    hemispheres: str = "NE",
    lens: str = "",
    orientation: int = 1,
) -> bytes:
    """EXIF with the place, in degrees, minutes and seconds as fractions, and the lens. hemispheres: a letter for each
    direction, a space for none."""
    made = exif(orientation)
    values = zip(hemispheres, (latitude, longitude), strict=True)
    made.get_ifd(ExifTags.IFD.GPSInfo).update(
        {
            tag: value
            for at, (letter, parts) in enumerate(values)
            for tag, value in ((1 + 2 * at, letter), (2 + 2 * at, tuple(IFDRational(*part) for part in parts)))
            if value not in (" ", ())
        }
    )
    if lens:
        made.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.LensModel] = lens
    return made.tobytes()


def shot_with(make: str | bytes, model: str | bytes, orientation: int = 1, kind: int = 2) -> bytes:
    """EXIF with the make and the model of a camera: texts, or bytes as they are in the file, which Pillow would not
    write. kind: TIFF's type of both, 2 for text."""
    texts = [(each.encode() if isinstance(each, str) else each) + bytes(5) for each in (make, model)]
    size = 2 if kind == 3 else 1  # fewer than five bytes would lie in the entry itself
    first = 8 + 2 + 3 * 12 + 4
    places = first, first + len(texts[0])
    entries = [struct.pack("<HHII", 0x010F + at, kind, len(texts[at]) // size, places[at]) for at in range(2)]
    entries.append(struct.pack("<HHIHH", 0x0112, 3, 1, orientation, 0))
    return b"Exif\0\0II*\0\x08\0\0\0\3\0" + b"".join(entries) + bytes(4) + b"".join(texts)
