"""Pictures read from STL-10's binary files."""

import io

import numpy as np
import pytest
from numpy.typing import NDArray

from stages.decode.stl10 import RECORD
from stages.decode.stl10_records import pictures as read_pictures, upright


def stored(pictures: NDArray[np.uint8]) -> bytes:
    """STL-10's layout of uint8 (n, 96, 96, 3), written the slow way."""
    return b"".join(picture[:, :, channel].tobytes(order="F") for picture in pictures for channel in range(3))


@pytest.mark.parametrize("count", [1, 2, 70])
def test_pictures_come_out_upright_and_in_order(count: int) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (count, 96, 96, 3), dtype=np.uint8)
    content = stored(pictures)
    stream = io.BytesIO(content)
    read = list(read_pictures(stream.read(512), stream))
    assert b"".join(record for record, _ in read) == content
    assert np.array_equal([pixels for _, pixels in read], pictures)
    assert np.array_equal(upright(content), pictures)


def test_the_file_is_never_in_memory_as_a_whole() -> None:
    stream = io.BytesIO(bytes(RECORD * 300))
    next(read_pictures(b"", stream))
    assert stream.tell() == RECORD


def test_a_truncated_file_is_an_error() -> None:
    with pytest.raises(EOFError):
        list(read_pictures(b"", io.BytesIO(bytes(RECORD + 5))))
