import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages import stl10


def stored(pictures: np.ndarray) -> bytes:
    """STL-10's layout written down the slow way, from uint8 (n, 96, 96, 3)."""
    return b"".join(picture[:, :, channel].tobytes(order="F") for picture in pictures for channel in range(3))


@pytest.mark.parametrize("count", [1, 32, 33, 70])
def test_pictures_come_out_upright_and_in_order(count: int) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (count, 96, 96, 3), dtype=np.uint8)
    content = stored(pictures)
    stream = io.BytesIO(content)
    read = list(stl10.pictures(stream.read(512), stream))
    assert b"".join(record for record, _ in read) == content
    assert np.array_equal([pixels for _, pixels in read], pictures)


def test_the_file_is_never_held_whole() -> None:
    stream = io.BytesIO(bytes(stl10.RECORD * 300))
    next(stl10.pictures(b"", stream))
    assert stream.tell() <= 40 * stl10.RECORD


@given(st.integers(0, 5 * stl10.RECORD))
def test_only_whole_pictures_are_pictures(size: int) -> None:
    assert (stl10.problem("train_X.bin", size) is None) == (size % stl10.RECORD == 0)


def test_labels_are_no_pictures() -> None:
    assert stl10.is_named_so("a/train_y.bin")
    assert stl10.problem("a/train_y.bin", stl10.RECORD) == "labels of STL-10, not pictures"


def test_a_file_that_ends_early_is_said() -> None:
    with pytest.raises(EOFError):
        list(stl10.pictures(b"", io.BytesIO(bytes(stl10.RECORD + 5))))
