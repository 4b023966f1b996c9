"""The traits of pictures: bounded, equal however they are computed, and told apart on real photographs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image, ImageEnhance, ImageFilter

from stages.backbone.photographs import PHOTOGRAPHS, open_photograph
from stages.decode.picture_traits import COLOURS, picture_traits
from stages.record.framing import Framing, Pixels
from tests.example_counts import examples

BLURRED = ("microaneurysms",)
"""Those that are not sharp in the first place."""


def scaled(picture: Image.Image, side: int) -> Pixels:
    """A picture as preprocess normalises it, without its padding."""
    small = picture.convert("RGB").resize(Framing(side, "pad").scaled(picture.size), Image.Resampling.LANCZOS)
    return np.asarray(small)


def plain(*colour: int) -> Pixels:
    return np.full((20, 30, 3), colour, np.uint8)


def brute_force(grey: Pixels) -> float:
    """The sharpness pixel by pixel."""
    lost = whole = pairs = 0
    for rows in (grey.tolist(), grey.T.tolist()):
        for row in rows:
            for before, one, other, after in zip(row, row[1:], row[2:], row[3:], strict=False):
                pairs += 1
                if abs(one - other) >= 3:
                    whole += 3 * abs(one - other)
                    lost += max(0, 3 * abs(one - other) - abs(after - before))
    return round(8 * lost / (8 * whole + 3 * pairs), 3) if pairs else 0.0


@settings(max_examples=examples(60))
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32), st.sampled_from((2, 6, 40, 256)))
def test_traits_are_bounded_and_those_of_brute_force(height: int, width: int, seed: int, shades: int) -> None:
    grey = np.random.default_rng(seed).integers(0, shades, (height, width), dtype=np.uint8)
    found = picture_traits(np.repeat(grey[..., np.newaxis], 3, axis=2))
    assert found.sharpness == brute_force(grey)
    assert math.isclose(found.brightness, grey.mean() / 255, abs_tol=0.0006)
    assert all(0 <= each <= 1 for each in found[:3])
    assert found.colour in ("black", "grey", "white")


def test_the_contrast_leaves_out_a_hundredth_at_each_end() -> None:
    grey = np.full(1000, 100, np.uint8)
    grey[:10], grey[-10:] = 0, 255
    for outliers, expected in ((grey, 0.0), (np.append(grey, np.array([0, 255], np.uint8)), 1.0)):
        pixels = np.repeat(outliers.reshape(1, -1, 1), 3, axis=2)
        assert picture_traits(pixels).contrast == expected


@pytest.mark.parametrize("side", [224, 96])
@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_a_blurred_photograph_is_less_sharp_at_each_step(name: str, side: int) -> None:
    picture = open_photograph(name).convert("RGB")
    step = max(picture.size) / side
    blurred = [picture, *(picture.filter(ImageFilter.GaussianBlur(step * radius)) for radius in (0.5, 1, 2))]
    sharp, *others = (picture_traits(scaled(each, side)).sharpness for each in blurred)
    if name in BLURRED:
        assert sharp >= others[0] >= others[1] >= others[2]
    else:
        assert sharp > others[0] > others[1] > others[2]
        assert sharp > 0.25 and others[2] < 0.22


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_a_brighter_photograph_with_less_contrast_is_as_sharp(name: str) -> None:
    picture = open_photograph(name).convert("RGB")
    before = picture_traits(scaled(picture, 224))
    faded = ImageEnhance.Brightness(ImageEnhance.Contrast(picture).enhance(0.6)).enhance(1.2)
    faint = picture_traits(scaled(faded, 224))
    assert abs(faint.sharpness - before.sharpness) < 0.05
    assert faint.brightness > before.brightness and faint.contrast < before.contrast


def test_a_flat_picture_has_no_sharpness() -> None:
    assert picture_traits(plain(90, 90, 90)) == (round(90 / 255, 3), 0.0, 0.0, "grey")
    ramp = np.repeat(np.arange(256, dtype=np.uint8)[np.newaxis, :, np.newaxis], 3, axis=2).repeat(40, axis=0)
    assert picture_traits(ramp).sharpness == 0.0  # a smooth gradient has no edge


@pytest.mark.parametrize(
    ("colour", "expected"),
    [
        *(((0, 0, 0), "black"), ((255, 255, 255), "white"), ((128, 128, 128), "grey"), ((245, 244, 240), "white")),
        *(((220, 20, 30), "red"), ((139, 0, 0), "red"), ((255, 140, 0), "orange"), ((139, 69, 19), "brown")),
        *(((101, 67, 33), "brown"), ((255, 230, 0), "yellow"), ((0, 128, 0), "green"), ((85, 107, 47), "green")),
        *(((135, 206, 235), "blue"), ((0, 0, 128), "blue"), ((128, 0, 128), "purple"), ((75, 0, 130), "purple")),
        *(((255, 192, 203), "pink"), ((255, 105, 180), "pink"), ((210, 180, 140), "brown"), ((0, 200, 120), "green")),
    ],
)
def test_a_colour_has_the_name_that_people_give_it(colour: tuple[int, int, int], expected: str) -> None:
    assert picture_traits(plain(*colour)).colour == expected


def test_a_thing_gives_its_colour_rather_than_its_background() -> None:
    pixels = plain(250, 250, 250).copy()
    pixels[:, :12] = (200, 20, 20)  # two fifths
    assert picture_traits(pixels).colour == "red"
    pixels[:, 3:12] = 250
    assert picture_traits(pixels).colour == "white"


def test_every_colour_has_a_picture() -> None:
    every = np.stack(np.meshgrid(*[np.arange(4, 256, 24, dtype=np.uint8)] * 3), axis=-1).reshape(-1, 3)
    assert {picture_traits(plain(*colour)).colour for colour in every} == set(COLOURS)
