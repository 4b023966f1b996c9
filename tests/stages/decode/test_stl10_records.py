"""Pictures read from STL-10's binary files."""

import io

import numpy as np
import pytest

from stages.decode.stl10 import RECORD
from stages.decode.stl10_records import records, upright


def test_pictures_come_out_upright_and_in_order() -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (5, 96, 96, 3), dtype=np.uint8)
    # STL-10's layout, written the slow way.
    content = b"".join(picture[:, :, channel].tobytes(order="F") for picture in pictures for channel in range(3))
    stream = io.BytesIO(content)
    assert b"".join(records(stream.read(512), stream)) == content
    assert np.array_equal(upright(content), pictures)


def test_the_file_is_never_in_memory_as_a_whole() -> None:
    stream = io.BytesIO(bytes(RECORD * 300))
    next(records(b"", stream))
    assert stream.tell() == RECORD


def test_a_truncated_file_is_an_error() -> None:
    with pytest.raises(EOFError):
        list(records(b"", io.BytesIO(bytes(RECORD + 5))))
