"""Thumbnails become pictures as a backbone takes them."""

import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from stages.classify.training.training_pixels import frame_thumbnails
from stages.datum.contract import StageError
from stages.record.framing import CROP, PAD, Framing


def jpeg(pixels: NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "JPEG", quality=95)
    return file.getvalue()


def decoded(file: bytes) -> NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(file)))


def test_a_thumbnail_of_the_backbones_size_is_taken_pixel_by_pixel(tiles: NDArray[np.uint8]) -> None:
    files = [jpeg(tiles[0]), jpeg(tiles[1])]
    assert np.array_equal(frame_thumbnails(files, Framing(96, PAD)), np.stack([decoded(each) for each in files]))


def test_a_long_thumbnail_is_padded_with_the_colour_of_its_border() -> None:
    wide = np.zeros((48, 96, 3), np.uint8)
    wide[:] = (200, 40, 90)
    (square,) = frame_thumbnails([jpeg(wide)], Framing(96, PAD))
    assert square.shape == (96, 96, 3)
    assert np.abs(square.astype(int) - (200, 40, 90)).max() <= 3


def test_a_long_thumbnail_is_cropped_to_its_middle(tiles: NDArray[np.uint8]) -> None:
    file = jpeg(np.concatenate([tiles[0][:, :48], tiles[1], tiles[2][:, :48]], axis=1))
    (square,) = frame_thumbnails([file], Framing(96, CROP))
    assert np.array_equal(square, decoded(file)[:, 48:144])


@pytest.mark.parametrize("side", [32, 300])
def test_thumbnails_are_scaled_to_the_backbones_size(tiles: NDArray[np.uint8], side: int) -> None:
    given = frame_thumbnails([jpeg(tiles[0])], Framing(side, PAD))
    assert given.shape == (1, side, side, 3)
    back = np.asarray(Image.fromarray(given[0]).resize((16, 16), Image.Resampling.BOX), int)
    assert np.abs(back - np.asarray(Image.fromarray(tiles[0]).resize((16, 16), Image.Resampling.BOX), int)).mean() < 6


def test_grey_thumbnails_become_colour_pictures(tiles: NDArray[np.uint8]) -> None:
    (square,) = frame_thumbnails([jpeg(tiles[0][..., 0])], Framing(96, PAD))
    assert (square[..., 0] == square[..., 2]).all()


def test_a_damaged_thumbnail_is_refused(tiles: NDArray[np.uint8]) -> None:
    for file in (b"", b"not a picture", jpeg(tiles[0])[:400]):
        with pytest.raises(StageError, match="a thumbnail in the table of labelled pictures is damaged"):
            frame_thumbnails([file], Framing(96, PAD))
