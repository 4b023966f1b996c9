import numpy as np
from hypothesis import given, strategies as st

from stages.knn.top_k import least, room


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 20), width=st.integers(1, 3000), count=st.integers(1, 60))
def test_the_smallest_of_each_row(seed: int, rows: int, width: int, count: int) -> None:
    random = np.random.default_rng(seed)
    matrix = np.full((rows, room(width)), np.inf, np.float32)
    matrix[:, :width] = random.integers(0, 50, size=(rows, width)) if seed % 2 else random.normal(size=(rows, width))
    count = min(count, width)
    numbers, columns = least(matrix, count)
    assert numbers.shape == columns.shape == (rows, count)
    assert np.array_equal(np.sort(numbers, axis=1), np.sort(matrix, axis=1)[:, :count])
    assert np.array_equal(np.take_along_axis(matrix, columns, axis=1), numbers)
    assert all(len(set(row)) == count for row in columns.tolist())


def test_a_width_has_room_and_divisors() -> None:
    assert [room(width) for width in (1, 256, 257, 5625)] == [256, 256, 512, 5632]
