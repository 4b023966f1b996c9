"""The colours that a file means by its samples: its ICC profile, PNG's gamma and primaries, or those that HEIC and AVIF
state by number (nclx); and their conversion to sRGB, as browsers show them. Little CMS, which is a part of Pillow,
determines the bytes.

A profile that is damaged, of another kind of colours than the picture, or next to sRGB, is as none.
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pi_heif
from PIL import Image, ImageCms, ImageFile

_SPACES = {"RGB ": "RGB", "GRAY": "L", "CMYK": "CMYK"}  # the modes of samples, by the colour space of a profile
_MOST = 4 << 20  # bytes of a profile that is looked at
_PROBES = 9  # values of each colour
_NEAR = 2  # of 255: profiles of sRGB round in many ways
_MOST_EXPONENT = 10  # past that, a gamma is damage
_USUAL_GAMMA, _SLIGHT = 0.45455, 0.001  # of PNG's gAMA: about that of sRGB
SRGB_PRIMARIES = (0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)
"""White, red, green and blue of sRGB, of each the x and the y of CIE 1931."""
_SAMPLES = np.linspace(0, 1, 1024)  # of a curve
_DIFFUSE = 203  # of 10,000 cd/m²: what of HDR is white in sRGB; lights that are brighter are white, too
_PRIMARIES = ("white", "red", "green", "blue")
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
        profile = _of_nclx(picture.info["nclx_profile"]) if "nclx_profile" in picture.info else _of_png(picture)
    found = _conversion(profile) if 0 < len(profile) <= _MOST else None
    return None if found is None or (found.mode == "CMYK") != (picture.mode == "CMYK") else found


def _of_png(picture: ImageFile.ImageFile) -> bytes:
    """The profile with the gamma and the primaries that a PNG gives; b"" for those of sRGB."""
    gamma, primaries = picture.info.get("gamma"), picture.info.get("chromaticity", SRGB_PRIMARIES)
    if "srgb" in picture.info or not gamma:
        return b""
    usual = abs(gamma - _USUAL_GAMMA) < _SLIGHT and np.allclose(primaries, SRGB_PRIMARIES, atol=0.001)
    return b"" if usual else profile_of(gamma, primaries)


def nclx(data: bytes) -> dict[str, Any]:
    """What an AVIF says of its colours, as the decoder of HEIC tells it; {} if it says nothing."""
    try:
        told = pi_heif.open_heif(data).info.get("nclx_profile")
    except Exception:  # damaged boxes, of which the picture needs few
        return {}
    return {"nclx_profile": told} if told else {}


def _of_nclx(told: Mapping[str, Any]) -> bytes:
    """The profile with the primaries and the curve (transfer characteristics) of ITU-T H.273; b"" for those of sRGB.
    Video's curves of SDR count as sRGB's."""
    primaries = tuple(told[f"color_primary_{name}_{axis}"] for name in _PRIMARIES for axis in "xy")
    curve = _CURVES.get(told["transfer_characteristics"], _srgb)
    if not all(primaries) or (curve is _srgb and np.allclose(primaries, SRGB_PRIMARIES, atol=0.001)):
        return b""
    values = (curve(_SAMPLES).clip(0, 1) * 0xFFFF).round().astype(int)
    return _profile(struct.pack(f">4sII{len(values)}H", b"curv", 0, len(values), *values), primaries)


def _srgb(signal: Floats) -> Floats:
    light: Floats = np.where(signal <= 0.04045, signal / 12.92, ((signal + 0.055) / 1.055) ** 2.4)
    return light


def _pq(signal: Floats) -> Floats:
    power = signal ** (32 / 2523)
    light: Floats = (np.maximum(power - 107 / 128, 0) / (2413 / 128 - 2392 / 128 * power)) ** (8192 / 1305)
    return light * 10_000 / _DIFFUSE


def _hlg(signal: Floats) -> Floats:
    """With the curve of a display of 1,000 cd/m², on which three quarters of the signal are diffuse white."""
    scene: Floats = np.where(
        signal <= 0.5, signal**2 / 3, (np.exp((signal - 0.55991073) / 0.17883277) + 0.28466892) / 12
    )
    return scene**1.2 * 1000 / _DIFFUSE


_CURVES: dict[int, Callable[[Floats], Floats]] = {
    4: lambda signal: signal**2.2,
    5: lambda signal: signal**2.8,
    8: np.positive,
    16: _pq,
    18: _hlg,
}
"""Light by signal, both 0 to 1, of the transfer characteristics that sRGB's curve does not stand for."""


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
    if not 1 / _MOST_EXPONENT <= 1 / gamma <= _MOST_EXPONENT:
        return b""
    return _profile(struct.pack(">4sIIH2x", b"curv", 0, 1, round(256 / gamma)), primaries)


def _profile(curve: bytes, primaries: tuple[float, ...]) -> bytes:
    points = list(zip(primaries[::2], primaries[1::2], strict=True))
    if not all(y for _, y in points):
        return b""
    white, *colours = (np.array([x / y, 1.0, (1 - x - y) / y]) for x, y in points)
    columns = np.stack(colours, 1)
    adapted = np.linalg.inv(_BRADFORD) @ np.diag(_BRADFORD @ _D50 / (_BRADFORD @ white)) @ _BRADFORD
    try:
        to_xyz = adapted @ columns @ np.diag(np.linalg.solve(columns, white))
    except np.linalg.LinAlgError:  # no three colours
        return b""
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
