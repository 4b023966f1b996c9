"""The perceptual hash: nearly equal for copies of a picture, unrelated for other pictures."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageEnhance, ImageFilter

from stages.framing import Pixels
from stages.hashes import differing
from stages.perceptual import perceptual_hash, perceptual_hashes

pictures = st.tuples(st.integers(1, 40), st.integers(1, 40)).flatmap(lambda size: arrays(np.uint8, (*size, 3)))


def blurred(seed: int, width: int = 224, height: int = 168) -> Pixels:
    """Noise without the finest detail, in the frequencies of photographs."""
    noise = np.random.default_rng(seed).integers(0, 256, (height // 8, width // 8, 3), np.uint8)
    picture = Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(picture.filter(ImageFilter.GaussianBlur(4)))


def apart(one: Pixels, other: Pixels) -> int:
    return (perceptual_hash(one) ^ perceptual_hash(other)).bit_count()


def compressed(pixels: Pixels, quality: int) -> Pixels:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file).convert("RGB"))


@given(pictures)
def test_it_is_a_number_of_64_bits_that_the_pixels_determine(pixels: Pixels) -> None:
    found = perceptual_hash(pixels)
    assert 0 <= found < 1 << 64
    assert perceptual_hash(pixels[:, ::-1][:, ::-1]) == found  # a view, and not contiguous


@given(
    st.tuples(st.integers(0, 5), st.integers(1, 300)).flatmap(
        lambda shape: st.integers(0, 2**32).map(
            lambda seed: np.random.default_rng(seed).integers(0, 256, (shape[0], shape[1], shape[1], 3), np.uint8)
        )
    )
)
def test_several_squares_have_the_hashes_that_each_has_alone(squares: Pixels) -> None:
    assert perceptual_hashes(squares) == [perceptual_hash(each) for each in squares]
    assert perceptual_hashes(squares[:, ::-1]) == [perceptual_hash(each[::-1]) for each in squares]


@given(pictures)
def test_at_most_half_of_the_frequencies_are_above_their_median(pixels: Pixels) -> None:
    assert perceptual_hash(pixels).bit_count() <= 32


@pytest.mark.parametrize("seed", range(5))
def test_copies_differ_in_few_bits(seed: int) -> None:
    pixels = blurred(seed)
    picture = Image.fromarray(pixels)
    assert apart(pixels, compressed(pixels, 40)) <= 4
    assert apart(pixels, np.asarray(picture.resize((112, 84), Image.Resampling.LANCZOS))) <= 4
    assert apart(pixels, np.asarray(picture.resize((190, 168), Image.Resampling.LANCZOS))) <= 4  # narrower
    assert apart(pixels, np.asarray(ImageEnhance.Brightness(picture).enhance(1.2))) <= 8
    assert apart(pixels, np.asarray(picture.convert("L").convert("RGB"))) == 0


def test_other_pictures_differ_in_about_half_of_the_bits() -> None:
    found = np.array([perceptual_hash(blurred(seed)) for seed in range(40)], np.uint64)
    apart = differing(found[:20], found[20:])
    assert apart.dtype == np.uint8
    assert 28 < apart.mean() < 36
    assert apart.min() > 14


def test_the_bits_are_counted() -> None:
    one, other = np.array([0, 1, 2**64 - 1], np.uint64), np.array([0, 2, 0], np.uint64)
    assert differing(one, other).tolist() == [0, 2, 64]


def test_a_picture_of_one_colour_has_the_constant_frequency_alone() -> None:
    assert perceptual_hash(np.full((30, 50, 3), 200, np.uint8)) == 1 << 63


def test_the_hash_is_that_of_its_definition() -> None:
    """Beside a definition in floating-point numbers, and a value that must be the same on every machine."""
    pixels = blurred(7)
    small = np.asarray(Image.fromarray(pixels).convert("L").resize((32, 32), Image.Resampling.LANCZOS), np.float64)
    angles = np.outer(np.arange(8), 2 * np.arange(32) + 1) * np.pi / 64
    low = (np.cos(angles) @ small @ np.cos(angles).T).ravel()
    expected = "".join("1" if value > np.median(low[1:]) else "0" for value in low)
    assert f"{perceptual_hash(pixels):064b}" == expected
    ramp = np.add.outer(np.arange(60) * 3, np.arange(80) ** 2 // 40).astype(np.uint8)
    assert f"{perceptual_hash(np.stack([ramp] * 3, axis=2)):016x}" == "96295a356a546dba"
