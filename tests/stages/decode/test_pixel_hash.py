"""Exact copies in files that differ, and all that looks like one and is none."""

import io

import numpy as np
import pytest
from PIL import Image, ImageCms, PngImagePlugin

from stages.decode import colour_profiles
from stages.decode.picture_normaliser import NormalisedPicture, normalise
from stages.record.file_kinds import kind_of
from stages.record.framing import Framing
from stages.record.sources import LOSSLESS, LOSSY, PALETTE, RAW
from tests.stages.raw_files import dng
from tests.stages.scenes import saved, scene

LARGE = (3000, 2000)


def read(file: bytes) -> NormalisedPicture:
    return normalise(file, kind_of(file), Framing(96, "pad"), shown=True)


def dated(picture: Image.Image, orientation: int = 1) -> Image.Exif:
    exif = picture.getexif()
    exif[0x0132], exif[0x0112] = "2020:01:02 03:04:05", orientation
    return exif


def exact(*files: bytes) -> bool:
    """Whether all of them are exact copies of the first one."""
    hashes = {read(file).facts.pixels for file in files}
    return hashes != {""} and len(hashes) == 1


def test_lossless_files_of_equal_pixels_are_exact_copies() -> None:
    picture = scene(1)
    files = [
        saved(picture),
        saved(picture, compress_level=0),
        saved(picture.convert("RGBA")),
        saved(picture, "BMP"),
        saved(picture, "TIFF", compression="tiff_lzw"),
        saved(picture, "WEBP", lossless=True),
    ]
    assert exact(*files)
    few = picture.quantize(200)
    assert exact(saved(few), saved(few.convert("RGB")), saved(few, "GIF"))
    grey = picture.convert("L")
    assert exact(saved(grey), saved(grey.convert("RGB")))
    turned = picture.transpose(Image.Transpose.ROTATE_270)
    assert exact(saved(turned), saved(picture, "TIFF", exif=dated(picture, orientation=6)))


def test_a_small_jpeg_is_an_exact_copy_of_its_pixels() -> None:
    jpeg = saved(scene(1), "JPEG")
    assert exact(jpeg, saved(Image.open(io.BytesIO(jpeg))))
    assert not exact(jpeg, saved(scene(1)))


@pytest.mark.parametrize("size", [(300, 200), LARGE])
@pytest.mark.parametrize("progressive", [False, True])
def test_metadata_do_not_make_jpegs_differ(size: tuple[int, int], progressive: bool) -> None:
    picture = scene(2, size)
    plain = saved(picture, "JPEG", progressive=progressive)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    described = saved(
        picture, "JPEG", progressive=progressive, exif=dated(picture), comment=b"a word", icc_profile=profile
    )
    assert exact(plain, described, plain + b"\0" * 100)
    assert not exact(plain, saved(picture, "JPEG", progressive=progressive, exif=dated(picture, orientation=3)))
    assert not exact(plain, saved(picture, "JPEG", progressive=progressive, quality=74))


def test_a_picture_that_vanishes_in_the_compared_square_makes_a_difference() -> None:
    page = Image.new("L", LARGE, 255)
    other = page.copy()
    other.putpixel((1500, 700), 0)
    assert read(saved(page)).framed.pixels.tobytes() == read(saved(other)).framed.pixels.tobytes()
    assert not exact(saved(page), saved(other))
    assert not exact(saved(page, "JPEG"), saved(other, "JPEG"))


def many(*pictures: Image.Image, kind: str) -> bytes:
    return saved(pictures[0], kind, save_all=True, append_images=list(pictures[1:]))


def test_what_a_decoder_does_not_show_is_never_an_exact_copy() -> None:
    picture, other = scene(1), scene(2)
    for kind in ("GIF", "PNG", "WEBP", "TIFF"):
        assert read(many(picture, other, kind=kind)).facts.pixels == ""
    assert read(saved(picture, "JPEG") + saved(other, "JPEG")).facts.pixels == ""  # as of a moving photograph
    for kind in ("PNG", "GIF", "WEBP"):
        plain = saved(picture.quantize(64) if kind == "GIF" else picture, kind)
        assert read(plain + b"\0" * 9).facts.pixels == read(plain).facts.pixels != ""
        assert read(plain + b"an archive").facts.pixels == ""
    deep = Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 257)
    assert read(saved(deep)).facts.pixels == read(saved(deep, "TIFF")).facts.pixels == ""
    layers = PngImagePlugin.PngInfo()
    layers.add(b"mkBT", b"layers" * 1000)
    assert read(saved(picture, pnginfo=layers)).facts.pixels == ""
    assert read(dng(saved(picture, "JPEG"), 1)).facts.pixels == ""


def test_transparency_and_colours_make_a_difference() -> None:
    picture = scene(1)
    cut_out = picture.convert("RGBA")
    cut_out.putpixel((0, 0), (255, 255, 255, 0))
    white = picture.copy()
    white.putpixel((0, 0), (255, 255, 255))
    assert read(saved(cut_out)).framed.pixels.tobytes() == read(saved(white)).framed.pixels.tobytes()
    assert not exact(saved(cut_out), saved(white))
    profile = colour_profiles.profile_of(1 / 1.8, colour_profiles.SRGB_PRIMARIES)
    assert not exact(saved(picture), saved(picture, icc_profile=profile))
    assert exact(saved(picture, icc_profile=profile), saved(picture, "TIFF", icc_profile=profile))
    assert not exact(saved(picture, icc_profile=profile), saved(picture, icc_profile=profile + b"0"))


def test_the_coding_tells_what_others_are_made_from() -> None:
    picture = scene(1)
    assert [read(saved(picture, kind)).facts.coding for kind in ("PNG", "BMP", "TIFF")] == [LOSSLESS] * 3
    assert read(saved(picture, "WEBP", lossless=True)).facts.coding == LOSSLESS
    assert [read(saved(picture, kind)).facts.coding for kind in ("JPEG", "WEBP", "JPEG2000")] == [LOSSY] * 3
    assert read(saved(picture, "TIFF", compression="jpeg")).facts.coding == LOSSY
    assert [read(saved(picture.quantize(64), kind)).facts.coding for kind in ("GIF", "PNG")] == [PALETTE] * 2
    assert read(dng(saved(picture, "JPEG"), 1)).facts.coding == RAW


def test_one_program_writes_files_of_one_encoder() -> None:
    one, other = scene(1), scene(2)
    for kind, changed in (
        ("JPEG", {"quality": 60}),
        ("JPEG", {"progressive": True}),
        ("TIFF", {"compression": "jpeg"}),
    ):
        assert read(saved(one, kind)).facts.encoder == read(saved(other, kind)).facts.encoder
        assert read(saved(one, kind)).facts.encoder != read(saved(one, kind, **changed)).facts.encoder
    assert read(saved(one)).facts.encoder != read(saved(one.convert("L"))).facts.encoder
