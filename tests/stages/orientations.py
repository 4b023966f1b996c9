"""The eight orientations of EXIF: the value, and pixels as a camera stores them with it; and its date."""

import numpy as np
from PIL import ExifTags, Image

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
