"""The colours that a file means by its samples: its ICC profile, or PNG's gamma and primaries; and their conversion to
sRGB, as browsers show them. Little CMS, which is a part of Pillow, determines the bytes.

A profile that is damaged, of another kind of colours than the picture, or next to sRGB, is as none.
"""

from __future__ import annotations

import hashlib
import io
import struct
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageCms, ImageFile

_SPACES = {"RGB ": "RGB", "GRAY": "L", "CMYK": "CMYK"}  # the modes of samples, by the colour space of a profile
_MOST = 4 << 20  # bytes of a profile that is looked at
_PROBES = 9  # values of each colour
_NEAR = 2  # of 255: profiles of sRGB round in many ways
_MOST_EXPONENT = 10  # past that, a gamma is damage
_USUAL_GAMMA, _SLIGHT = 0.45455, 0.001  # of PNG's gAMA: about that of sRGB
SRGB_PRIMARIES = (0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)
"""White, red, green and blue of sRGB, of each the x and the y of CIE 1931."""
_D50 = np.array([0.9642, 1.0, 0.8249])  # the white of profiles
_BRADFORD = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])


Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


class ColourConversion(NamedTuple):
    """The way from a file's colours to sRGB. mode: that of the samples that it takes. digest: of the profile."""

    transform: ImageCms.ImageCmsTransform
    mode: str
    digest: bytes

    def srgb(self, picture: Image.Image) -> Image.Image:
        """A picture, or a strip of one, in sRGB. Transparency is left out."""
        taken = picture if picture.mode == self.mode else picture.convert("RGB").convert(self.mode)
        return self.transform.apply(taken)


def conversion(picture: ImageFile.ImageFile) -> ColourConversion | None:
    """What makes sRGB of an opened file's samples; None if that is what they are, as where the file says nothing."""
    profile = picture.info.get("icc_profile")
    if not isinstance(profile, bytes) or not profile:
        profile = _of_png(picture)
    found = _conversion(profile) if 0 < len(profile) <= _MOST else None
    return None if found is None or (found.mode == "CMYK") != (picture.mode == "CMYK") else found


def _of_png(picture: ImageFile.ImageFile) -> bytes:
    """The profile with the gamma and the primaries that a PNG gives; b"" for those of sRGB."""
    gamma, primaries = picture.info.get("gamma"), picture.info.get("chromaticity", SRGB_PRIMARIES)
    if "srgb" in picture.info or not gamma:
        return b""
    usual = abs(gamma - _USUAL_GAMMA) < _SLIGHT and np.allclose(primaries, SRGB_PRIMARIES, atol=0.001)
    return b"" if usual else profile_of(gamma, primaries)


@lru_cache(maxsize=16)
def _conversion(profile: bytes) -> ColourConversion | None:
    try:
        opened = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        mode = _SPACES[opened.profile.xcolor_space]
        transform = ImageCms.buildTransform(opened, ImageCms.createProfile("sRGB"), mode, "RGB")
        found = ColourConversion(transform, mode, hashlib.sha256(profile).digest())
        return None if mode == "RGB" and _changes_nothing(found) else found
    except (ImageCms.PyCMSError, KeyError, OSError, ValueError):
        return None


def _changes_nothing(found: ColourConversion) -> bool:
    values = np.linspace(0, 255, _PROBES).round().astype(np.uint8)
    probes = np.stack(np.meshgrid(values, values, values, indexing="ij"), -1).reshape(1, -1, 3)
    converted = np.asarray(found.srgb(Image.fromarray(probes)))
    return int(np.abs(converted.astype(np.int16) - probes).max()) <= _NEAR


def profile_of(gamma: float, primaries: tuple[float, ...]) -> bytes:
    """An ICC profile (version 2) of RGB with that exponent, as in gAMA, and those primaries. b"" if there is none."""
    exponent = 1 / gamma
    points = list(zip(primaries[::2], primaries[1::2], strict=True))
    if not 1 / _MOST_EXPONENT <= exponent <= _MOST_EXPONENT or not all(y for _, y in points):
        return b""
    white, *colours = (np.array([x / y, 1.0, (1 - x - y) / y]) for x, y in points)
    columns = np.stack(colours, 1)
    adapted = np.linalg.inv(_BRADFORD) @ np.diag(_BRADFORD @ _D50 / (_BRADFORD @ white)) @ _BRADFORD
    try:
        to_xyz = adapted @ columns @ np.diag(np.linalg.solve(columns, white))
    except np.linalg.LinAlgError:  # no three colours
        return b""
    curve = struct.pack(">4sIIH2x", b"curv", 0, 1, round(exponent * 256))
    tags = [(b"wtpt", _xyz(_D50))]
    tags += [(name, _xyz(column)) for name, column in zip((b"rXYZ", b"gXYZ", b"bXYZ"), to_xyz.T, strict=True)]
    tags += [(name, curve) for name in (b"rTRC", b"gTRC", b"bTRC")]
    table, place = struct.pack(">I", len(tags)), 128 + 4 + 12 * len(tags)
    for name, content in tags:
        table += struct.pack(">4sII", name, place, len(content))
        place += len(content)
    header = struct.pack(
        ">I4sI4s4s4s12x4s28x3i48x", place, b"lcms", 0x02100000, b"mntr", b"RGB ", b"XYZ ", b"acsp", *_fixed(_D50)
    )
    return header + table + b"".join(content for _, content in tags)


def _xyz(value: Floats) -> bytes:
    return struct.pack(">4sI3i", b"XYZ ", 0, *_fixed(value))


def _fixed(value: Floats) -> list[int]:
    return [round(each * 65536) for each in value]
