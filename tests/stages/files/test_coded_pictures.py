"""Pictures as packs hold them."""

import io

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image, ImageDraw

from stages.backbone.photographs import PHOTOGRAPHS, open_photograph
from stages.decode.thumbnails import thumbnail
from stages.files import coded_pictures
from stages.record.framing import PAD, Framing, PictureSquare, Pixels, border_colour, unpadded


def photograph(side: int = 224) -> PictureSquare:
    framing, picture = Framing(side, PAD), open_photograph(next(iter(PHOTOGRAPHS))).convert("RGB")
    return framing.frame(np.asarray(picture.resize(framing.scaled(picture.size), Image.Resampling.LANCZOS)))


def encode(framed: PictureSquare) -> bytes:
    return coded_pictures.encode(np.ascontiguousarray(unpadded(framed)))


def test_a_photograph_comes_back_nearly_as_it_was_in_a_sixth_of_the_bytes() -> None:
    framed = photograph()
    coded = encode(framed)
    assert len(coded) < framed.pixels.nbytes / 5
    back = coded_pictures.decode(coded, framed.size, 224)
    assert back.size == framed.size
    assert np.abs(unpadded(back).astype(int) - unpadded(framed)).mean() < 2
    assert np.array_equal(coded_pictures.compared(framed), back.pixels)


def drawing(side: int = 224) -> Pixels:
    picture = Image.new("RGB", (side, side // 2), "white")
    ImageDraw.Draw(picture).ellipse((20, 10, side - 20, side // 2 - 10), "red", "navy", 6)
    return np.asarray(picture.resize((side - 1, side // 2 - 3), Image.Resampling.LANCZOS))


def test_a_drawing_comes_back_as_it_was() -> None:
    framed = Framing(224, PAD).frame(drawing())
    assert np.array_equal(coded_pictures.compared(framed), framed.pixels)
    assert len(encode(framed)) * 7 <= unpadded(framed).nbytes


def test_a_flat_picture_with_too_much_in_it_is_a_photograph() -> None:
    picture = np.zeros((224, 224, 3), np.uint8)
    picture[:, 110:] = np.random.default_rng(0).integers(0, 256, (224, 114, 3))
    back = coded_pictures.compared(PictureSquare(picture, (224, 224)))
    assert not np.array_equal(back, picture)
    assert np.abs(back.astype(int) - picture).mean() < 8


@pytest.mark.parametrize("side", [96, 224, 1024])
def test_a_picture_of_noise_is_coded_like_any_other(side: int) -> None:
    noise = np.random.default_rng(side).integers(0, 256, (side, side, 3), np.uint8)
    framed = Framing(side, PAD).frame(noise)
    back = coded_pictures.decode(encode(framed), framed.size, side)
    assert np.array_equal(coded_pictures.compared(framed), back.pixels)
    assert Image.open(io.BytesIO(thumbnail(Image.fromarray(noise)))).size == (min(side, 240),) * 2


@given(st.integers(1, 16), st.integers(1, 16), st.integers(0, 2**32 - 1))
def test_a_picture_of_any_shape_is_padded_with_the_colour_of_its_border(width: int, height: int, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    framed = Framing(16, PAD).frame(pixels)
    assert np.array_equal(unpadded(framed), pixels)
    padding = np.ones((16, 16), bool)
    unpadded(PictureSquare(padding[..., None], framed.size))[:] = False
    assert (framed.pixels[padding] == border_colour(pixels)).all()
    back = coded_pictures.decode(coded_pictures.encode(pixels), (width, height), 16)
    assert back.size == (width, height)
    assert (back.pixels[padding] == border_colour(unpadded(back))).all()


def _saved(pixels: Pixels, format: str = "JPEG", mode: str = "RGB") -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, format)
    return file.getvalue()


def test_another_file_is_refused() -> None:
    for pixels in (np.zeros((8, 8, 3), np.uint8), np.arange(192, dtype=np.uint8).reshape(8, 8, 3)):  # WebP, JPEG
        coded = coded_pictures.encode(pixels)
        cut = coded[: len(coded) // 2]
        for other in (b"", b"no picture", cut, _saved(pixels, "PNG"), _saved(pixels, mode="L")):
            with pytest.raises((ValueError, OSError)):
                coded_pictures.decode(other, (8, 8), 8)
    for size, side in (((8, 7), 8), ((8, 8), 7)):
        with pytest.raises(ValueError, match="and not of"):
            coded_pictures.decode(coded, size, side)
