"""The perceptual hash: nearly equal for copies of a picture, unrelated for other pictures."""

import io

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageFont
from skimage import data

from stages.decode.perceptual_hash import perceptual_hash, perceptual_hashes
from stages.record.framing import Pixels
from stages.record.hashes import NO_VERDICT, differing

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
def test_a_hash_with_a_verdict_has_its_first_bit(pixels: Pixels) -> None:
    assert perceptual_hash(pixels) == NO_VERDICT or perceptual_hash(pixels) >> 63


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
    one, other = np.array([7, 1, 2**64 - 1], np.uint64), np.array([7, 2, 1], np.uint64)
    assert differing(one, other).tolist() == [0, 2, 63]


def drawn(size: int = 300) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    picture = Image.new("RGB", (size, size), "white")
    return picture, ImageDraw.Draw(picture)


def flat(colour: str) -> Image.Image:
    return Image.new("RGB", (90, 50), colour)


def page(seed: int) -> Image.Image:
    """Lines of words of many lengths, as on a page of text."""
    random = np.random.default_rng(seed)
    picture, draw = drawn(600)
    for top in range(60, 540, 14):
        left = 60
        while left < 520:
            right = left + int(random.integers(10, 60))
            draw.rectangle((left, top, min(right, 540), top + 6), fill="black")
            left = right + 8
    return picture


def sign(what: str) -> Image.Image:
    """A warning sign with another letter each."""
    picture, draw = drawn()
    draw.polygon([(150, 20), (285, 270), (15, 270)], fill="yellow", outline="black", width=12)
    draw.text((150, 190), what, "black", ImageFont.load_default(110), anchor="mm")
    return picture


def flag(*colours: str) -> Image.Image:
    picture, draw = drawn()
    for place, colour in enumerate(colours):
        draw.rectangle((0, 100 * place, 300, 100 * place + 99), fill=colour)
    return picture


@pytest.mark.parametrize(
    "picture",
    [
        *(flat(colour) for colour in ("white", "black", "teal")),
        *(page(seed) for seed in range(4)),
        *(sign(letter) for letter in "AB!?"),
        *(flag(*each) for each in (("red", "white", "blue"), ("black", "red", "gold"), ("teal", "navy", "white"))),
    ],
)
def test_flat_pictures_have_no_verdict(picture: Image.Image) -> None:
    assert perceptual_hash(np.asarray(picture)) == NO_VERDICT
    assert perceptual_hash(np.asarray(picture.rotate(90))) == NO_VERDICT


@pytest.mark.parametrize("name", ["astronaut", "coffee", "chelsea", "rocket"])
def test_photographs_have_one_whatever_their_contrast(name: str) -> None:
    photograph = Image.fromarray(getattr(data, name)())
    for each in (photograph, ImageEnhance.Contrast(photograph).enhance(0.5), photograph.convert("L").convert("RGB")):
        assert perceptual_hash(np.asarray(each)) != NO_VERDICT


def test_the_hash_is_that_of_its_definition() -> None:
    """Beside a definition in floating-point numbers, and a value that must be the same on every machine."""
    pixels = blurred(7)
    small = np.asarray(Image.fromarray(pixels).convert("L").resize((32, 32), Image.Resampling.LANCZOS), np.float64)
    angles = np.outer(np.arange(8), 2 * np.arange(32) + 1) * np.pi / 64
    low = (np.cos(angles) @ small @ np.cos(angles).T).ravel()
    assert f"{perceptual_hash(pixels):064b}" == "1" + "".join("1" if value > 0 else "0" for value in low[1:])
    ramp = np.add.outer(np.arange(60) * 3, np.arange(80) ** 2 // 40).astype(np.uint8)
    assert f"{perceptual_hash(np.stack([ramp] * 3, axis=2)):016x}" == "96295a356a1449b2"
