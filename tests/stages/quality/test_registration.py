"""Pairs of thumbnails: changed copies are told from pictures that only look alike."""

import io
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter
from skimage import data

from stages.decode.perceptual_hash import perceptual_hash
from stages.quality.registration import alignments, copy_turn, pyramid
from tests.stages.scenes import lain, saved, scene, shown

BITS = 16

Change = Callable[[Image.Image], Image.Image]


def compressed(quality: int) -> Change:
    def change(picture: Image.Image) -> Image.Image:
        return Image.open(io.BytesIO(saved(picture, "JPEG", quality=quality))).convert("RGB")

    return change


CHANGES: dict[str, Change] = {
    "JPEG 30": compressed(30),
    "half": lambda picture: picture.resize((picture.width // 2, picture.height // 2), Image.Resampling.LANCZOS),
    "narrower": lambda picture: picture.resize((picture.width * 4 // 5, picture.height), Image.Resampling.LANCZOS),
    "cropped": lambda picture: picture.crop((8, 5, picture.width - 4, picture.height - 7)),
    "darker": lambda picture: ImageEnhance.Brightness(picture).enhance(0.7),
    "brighter": lambda picture: ImageEnhance.Brightness(picture).enhance(1.3),
    "less contrast": lambda picture: ImageEnhance.Contrast(picture).enhance(0.6),
    "more colour": lambda picture: ImageEnhance.Color(picture).enhance(1.4),
    "grey": lambda picture: picture.convert("L").convert("RGB"),
    "blurred": lambda picture: picture.filter(ImageFilter.GaussianBlur(1)),
    "rotated": lambda picture: picture.rotate(1, Image.Resampling.BICUBIC, fillcolor="white"),
}


def told(one: Image.Image, other: Image.Image) -> int | None:
    hashes = tuple(perceptual_hash(np.asarray(each)) for each in (one, other))
    return copy_turn(pyramid(shown(one)), pyramid(shown(other)), (hashes[0], hashes[1]), BITS)


@pytest.fixture(params=["astronaut", "coffee", "chelsea"])
def photograph(request: pytest.FixtureRequest) -> Image.Image:
    return Image.fromarray(getattr(data, request.param)()).resize((320, 240), Image.Resampling.LANCZOS)


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_copy_is_one_in_either_order(change: str, photograph: Image.Image) -> None:
    copy = CHANGES[change](photograph)
    assert told(photograph, copy) == 0
    assert told(copy, photograph) == 0


@pytest.mark.parametrize("number", range(8))
def test_a_turned_copy_is_found_with_its_turn(number: int, photograph: Image.Image) -> None:
    found = told(photograph, lain(compressed(60)(photograph), number))
    assert found is not None
    assert lain(lain(photograph, number), found).tobytes() == photograph.tobytes()


def test_other_scenes_are_no_copies() -> None:
    looks = [pyramid(shown(scene(seed))) for seed in range(6)]
    for at, one in enumerate(looks):
        for other in looks[:at]:
            assert copy_turn(one, other, (1 << 63, 1 << 63), BITS) is None


def test_a_thing_that_moved_is_no_copy(photograph: Image.Image) -> None:
    frames = []
    for left in (140, 152):
        frame = photograph.copy()
        ImageDraw.Draw(frame).ellipse((left, 100, left + 30, 130), fill="tomato")
        frames.append(compressed(90)(frame))
    assert told(*frames) is None
    fit = next(alignments(pyramid(shown(frames[0])), pyramid(shown(frames[1])), (1 << 63, 1 << 63), BITS))
    assert fit.alike > 0.95  # as a whole they look the same
    assert fit.worst > 16


def test_colours_that_changed_in_hue_are_no_copies(photograph: Image.Image) -> None:
    swapped = Image.merge("RGB", photograph.split()[::-1])
    assert told(photograph, swapped) is None


def test_a_small_picture_shows_too_little() -> None:
    assert told(scene(1, (50, 40)), scene(1, (50, 40))) == 0
    assert told(scene(1, (50, 39)), scene(1, (50, 39))) is None


def test_no_turn_is_tried_in_which_hashes_differ_too_much() -> None:
    one = pyramid(shown(scene(1)))
    assert copy_turn(one, one, (2**64 - 1, (1 << 63) | 1), BITS) is None
    assert list(alignments(one, one, (2**64 - 1, (1 << 63) | 1), BITS)) == []
