"""Colours of other profiles, gammas and primaries are those of sRGB that a browser shows, and a profile that means
nothing changes nothing."""

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms
from PIL.PngImagePlugin import PngInfo

from stages.decode import colour_profiles
from stages.decode.colour_profiles import SRGB_PRIMARIES
from stages.decode.picture_normaliser import NormalisedPicture, normalise
from stages.record.file_kinds import HEAD, kind_of
from stages.record.framing import CROP, Framing
from tests.stages.decode import drawn_scenes
from tests.stages.decode.drawn_scenes import SIDE, scene

SRGB = Image.fromarray(scene())
DISPLAY_P3 = (0.3127, 0.329, 0.68, 0.32, 0.265, 0.69, 0.15, 0.06)
SWAPPED = (0.3127, 0.329, 0.3, 0.6, 0.15, 0.06, 0.64, 0.33)
CLOSE = 3  # of 255, as samples of 8 bits round


def saved(picture: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def read(data: bytes, side: int = SIDE) -> NormalisedPicture:
    return normalise(data, kind_of(data[:HEAD]), Framing(side, CROP), shown=True)


def difference(one: bytes, other: bytes) -> int:
    pixels = [read(each).framed.pixels.astype(int) for each in (one, other)]
    return int(np.abs(pixels[0] - pixels[1]).max())


def srgb_profile() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def meant(picture: Image.Image, profile: bytes) -> Image.Image:
    """The samples that mean in a profile what those of a picture mean in sRGB."""
    found = ImageCms.profileToProfile(picture, io.BytesIO(srgb_profile()), io.BytesIO(profile), outputMode="RGB")
    assert found is not None
    found.info.clear()  # it would be saved with its profile
    return found


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP"])
@pytest.mark.parametrize("primaries", [DISPLAY_P3, SWAPPED], ids=["display P3", "swapped"])
def test_a_profile_is_converted_to_srgb_in_every_format(kind: str, primaries: tuple[float, ...]) -> None:
    profile = colour_profiles.profile_of(1 / 2.2, primaries)
    best: dict[str, dict[str, Any]] = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True}}
    lossless = best.get(kind, {})
    file = saved(meant(SRGB, profile), kind, icc_profile=profile, **lossless)
    assert np.abs(read(file).framed.pixels.astype(int) - read(saved(SRGB)).framed.pixels).mean() < 2
    assert difference(saved(meant(SRGB, profile), kind, **lossless), saved(SRGB)) > 20, "the profile does not matter"


def test_the_thumbnail_is_in_srgb_and_carries_no_profile() -> None:
    profile = colour_profiles.profile_of(1 / 2.2, SWAPPED)
    shown = Image.open(io.BytesIO(read(saved(meant(SRGB, profile), icc_profile=profile)).thumbnail))
    assert "icc_profile" not in shown.info
    assert np.abs(np.asarray(shown).astype(int) - np.asarray(SRGB.resize(shown.size))).mean() < 8


def test_large_pictures_are_shrunk_before_they_are_converted() -> None:
    profile = colour_profiles.profile_of(1 / 2.2, DISPLAY_P3)
    large = meant(SRGB, profile).resize((3000, 3000), Image.Resampling.BICUBIC)
    found = read(saved(large, icc_profile=profile))
    assert found.size == (3000, 3000)
    expected = read(saved(SRGB.resize((3000, 3000), Image.Resampling.BICUBIC))).framed.pixels
    assert np.abs(found.framed.pixels.astype(int) - expected).mean() < 2


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGBA"])
def test_the_modes_of_a_format_are_converted_alike(mode: str) -> None:
    profile = colour_profiles.profile_of(1 / 1.8, SRGB_PRIMARIES)
    picture = SRGB.convert("RGB").convert(mode)
    plain, other = read(saved(picture)), read(saved(picture, icc_profile=profile))
    expected = 255 * ((plain.framed.pixels / 255) ** 1.8)  # linear light; sRGB's curve is near an exponent of 2.2
    assert np.abs(other.framed.pixels.astype(int) - 255 * (expected / 255) ** (1 / 2.2)).mean() < 4


def test_cmyk_with_a_profile_of_rgb_and_grey_with_one_of_cmyk_are_read_as_without() -> None:
    profile = colour_profiles.profile_of(1 / 1.8, DISPLAY_P3)
    cmyk = SRGB.convert("CMYK")
    assert difference(saved(cmyk, "TIFF", icc_profile=profile), saved(cmyk, "TIFF")) == 0


@pytest.mark.parametrize(
    "profile", [b"no profile", srgb_profile(), srgb_profile()[:200], b"\0" * 200], ids=["text", "sRGB", "cut", "zeros"]
)
def test_a_profile_of_srgb_or_of_nothing_changes_no_byte(profile: bytes) -> None:
    plain, other = read(saved(SRGB)), read(saved(SRGB, icc_profile=profile))
    assert (plain.thumbnail, plain.facts.pixels) == (other.thumbnail, other.facts.pixels)
    assert np.array_equal(plain.framed.pixels, other.framed.pixels)


def with_chunks(png: bytes, *chunks: tuple[bytes, bytes]) -> bytes:
    made = b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )
    return png[:33] + made + png[33:]


def gamma(value: float) -> tuple[bytes, bytes]:
    return b"gAMA", struct.pack(">I", round(value * 100_000))


def primaries(values: tuple[float, ...]) -> tuple[bytes, bytes]:
    return b"cHRM", struct.pack(">8I", *(round(each * 100_000) for each in values))


def test_the_gamma_of_png_counts_unless_it_is_the_usual_one() -> None:
    ramp = np.tile(np.arange(SIDE, dtype=np.uint8) * 2 + 20, (SIDE, 1))
    plain = saved(Image.fromarray(ramp))
    assert difference(with_chunks(plain, gamma(0.45455)), plain) == 0
    linear = read(with_chunks(plain, gamma(1.0))).framed.pixels[0, :, 0] / 255
    light = ramp[0] / 255
    curve = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    assert np.abs(linear - curve).max() < CLOSE / 255
    assert difference(with_chunks(plain, gamma(1.0), (b"sRGB", b"\0")), plain) == 0
    for damaged in (gamma(0), gamma(1e-5), gamma(40_000)):
        assert difference(with_chunks(plain, damaged), plain) == 0


def test_the_primaries_of_png_count_beside_its_gamma() -> None:
    plain = saved(SRGB)
    found = read(with_chunks(plain, gamma(0.45455), primaries(SWAPPED))).framed.pixels
    expected = read(plain).framed.pixels[:, :, [2, 0, 1]]
    assert np.abs(found.astype(int) - expected).max() <= 12  # sRGB's curve is near the exponent alone
    for none in ((0.3,) * 8, (0.0,) * 8):
        assert difference(with_chunks(plain, gamma(0.45455), primaries(none)), plain) == 0


def test_a_profile_counts_before_the_gamma() -> None:
    info = PngInfo()
    info.add(*gamma(1.0))
    assert difference(saved(SRGB, icc_profile=srgb_profile(), pnginfo=info), saved(SRGB)) == 0


def with_nclx(kind: str, picture: Image.Image, primaries: int, transfer: int) -> bytes:
    """The file, in which these numbers are stated."""
    best: dict[str, Any] = {"quality": -1, "chroma": 444}
    data = drawn_scenes.encode(picture, kind, **(best if kind == "HEIF" else {"quality": 100, "subsampling": "4:4:4"}))
    at = data.index(b"colrnclx") + 8
    return data[:at] + struct.pack(">HH", primaries, transfer) + data[at + 4 :]


@pytest.mark.parametrize("kind", ["HEIF", "AVIF"])
@pytest.mark.parametrize(
    ("number", "primaries"), [(12, DISPLAY_P3), (9, (0.3127, 0.329, 0.708, 0.292, 0.17, 0.797, 0.131, 0.046))]
)
def test_the_primaries_of_heic_and_avif_are_converted(kind: str, number: int, primaries: tuple[float, ...]) -> None:
    plain = read(with_nclx(kind, SRGB, 1, 13)).framed.pixels.astype(int)
    profile = colour_profiles.profile_of(1 / 2.2, primaries)
    for transfer in (1, 13, 14):
        found = read(with_nclx(kind, meant(SRGB, profile), number, transfer)).framed.pixels
        assert np.abs(found - plain).mean() < 3  # sRGB's curve is near the exponent alone
    assert np.abs(read(with_nclx(kind, SRGB, number, 13)).framed.pixels - plain).max() > 20
    for nothing in ((1, 13), (1, 1), (1, 2), (2, 2), (2, 13)):
        np.testing.assert_array_equal(read(with_nclx(kind, SRGB, *nothing)).framed.pixels, plain)


@pytest.mark.parametrize("kind", ["HEIF", "AVIF"])
@pytest.mark.parametrize(("transfer", "white"), [(16, 0.5807), (18, 0.75)])
def test_diffuse_white_of_hdr_is_white(kind: str, transfer: int, white: float) -> None:
    """Also a grey card of 26 cd/m², which has a signal of 38 per cent, as ITU-R BT.2408 says."""
    for signal, light in ((0.0, 0.0), (0.38, 26 / 203), (white, 1.0), (1.0, 1.0)):
        flat = Image.new("RGB", (64, 64), (round(signal * 255),) * 3)
        found = read(with_nclx(kind, flat, 9, transfer)).framed.pixels
        expected = 255 * (12.92 * light if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055)
        assert np.abs(found - expected).max() <= 6


def test_a_profile_counts_before_nclx() -> None:
    profile = srgb_profile()
    plain = drawn_scenes.encode(SRGB, "HEIF", quality=-1, chroma=444)
    assert difference(drawn_scenes.encode(SRGB, "HEIF", quality=-1, chroma=444, icc_profile=profile), plain) == 0
