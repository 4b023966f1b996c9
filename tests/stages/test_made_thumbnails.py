"""Thumbnails: what they show, and which of several is chosen, in any order."""

import io
from itertools import permutations

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from stages.decode.picture_normaliser import normalise
from stages.decode.thumbnails import SIDE, thumbnail
from stages.record.file_kinds import FileKind
from stages.record.framing import CROP, PAD, Framing
from stages.record.sources import Source, chosen


def noise(size: tuple[int, int], seed: int = 0) -> Image.Image:
    width, height = size
    coarse = np.random.default_rng(seed).integers(0, 256, (height // 48 + 2, width // 48 + 2, 3), np.uint8)
    return Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)


def png(picture: Image.Image, comment: str = "") -> bytes:
    file, info = io.BytesIO(), PngImagePlugin.PngInfo()
    if comment:
        info.add_text("comment", comment)
    picture.save(file, "PNG", pnginfo=info)
    return file.getvalue()


def opened(jpeg: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(jpeg))
    assert picture.format == "JPEG"
    return picture


@pytest.mark.parametrize(
    ("size", "small"),
    [
        ((960, 480), (240, 120)),
        ((241, 100), (240, 100)),
        ((90, 240), (90, 240)),
        ((7, 5), (7, 5)),
        ((2000, 2), (240, 1)),
    ],
)
def test_the_longer_side_has_240_pixels_at_most(size: tuple[int, int], small: tuple[int, int]) -> None:
    assert SIDE == 240
    shown = opened(thumbnail(noise(size)))
    assert (shown.size, shown.mode) == (small, "RGB")
    assert "progressive" not in shown.info


@pytest.mark.parametrize(("fit", "small"), [(PAD, (240, 120)), (CROP, (240, 240))])
@pytest.mark.parametrize("side", [96, 224, 448])
def test_it_shows_the_compared_part_of_the_file_and_not_of_the_square(
    fit: str, small: tuple[int, int], side: int
) -> None:
    whole = noise((960, 480))
    shown = opened(normalise(png(whole), FileKind.PNG, Framing(side, fit), shown=True).thumbnail)
    assert shown.size == small
    kept = whole.crop(Framing(side, fit).kept(whole.size)).resize(small, Image.Resampling.LANCZOS)
    assert np.abs(np.asarray(shown).astype(int) - np.asarray(kept)).mean() < 4


@pytest.mark.parametrize(("size", "turned"), [((400, 200), (120, 240)), ((200, 100), (100, 200))])
def test_it_is_upright_and_without_the_comments_of_its_file(size: tuple[int, int], turned: tuple[int, int]) -> None:
    file, exif = io.BytesIO(), Image.Exif()
    exif[274] = 6  # turned by 90 degrees
    facts = {"comment": b"a comment of the file", "icc_profile": b"a profile", "dpi": (300, 300)}
    noise(size).save(file, "JPEG", exif=exif, **facts)
    shown = opened(normalise(file.getvalue(), FileKind.JPEG, Framing(96, PAD), shown=True).thumbnail)
    assert shown.size == turned
    assert facts.keys().isdisjoint(shown.info)
    assert not shown.getexif()


def test_the_picture_keeps_its_facts() -> None:
    picture = noise((100, 100))
    picture.info["comment"] = b"mine"
    assert thumbnail(picture) == thumbnail(Image.fromarray(np.asarray(picture)))
    assert picture.info == {"comment": b"mine"}


def test_it_depends_on_the_pixels_alone() -> None:
    picture = noise((300, 200))
    files = [png(picture), png(picture, "another file")]
    assert files[0] != files[1]
    made = [normalise(each, FileKind.PNG, Framing(96, PAD), shown=True).thumbnail for each in files]
    assert made[0] == made[1] == thumbnail(picture)


def test_a_region_and_a_search_have_none() -> None:
    data = png(noise((300, 200)))
    assert normalise(data, FileKind.PNG, Framing(96, PAD)).thumbnail == b""
    assert normalise(data, FileKind.PNG, Framing(96, PAD), (0.0, 0.0, 0.5, 0.5), shown=True).thumbnail == b""


def test_the_thumbnail_of_the_smallest_hash_is_chosen_however_they_are_divided() -> None:
    """Every division of three sources into those that are merged first and the rest, in every order."""
    shown = {Source(f"{path}.png", hash * 64): path.encode() for path, hash in (("a", "7"), ("b", "3"), ("c", "f"))}
    for order in permutations(shown):
        for begin in range(1, 4):
            first, rest = order[:begin], order[begin:]
            merged = chosen(([each], shown[each]) for each in first)
            assert merged == min((each.sha256, shown[each]) for each in first)[1]
            assert chosen([(first, merged), *(([each], shown[each]) for each in rest)]) == b"b"
    assert chosen([([], b"alone")]) == b"alone"
