"""STL-10's files told apart by name and size."""

from hypothesis import given, strategies as st

from stages.decode import stl10


@given(st.integers(0, 5 * stl10.RECORD))
def test_only_whole_records_are_pictures(size: int) -> None:
    assert (stl10.problem("train_X.bin", size) is None) == (size % stl10.RECORD == 0)


def test_labels_are_not_pictures() -> None:
    assert stl10.is_named_so("a/train_y.bin")
    assert stl10.problem("a/train_y.bin", stl10.RECORD) == "labels of STL-10, not pictures"
