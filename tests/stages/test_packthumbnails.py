from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages import packthumbnails
from stages.contract import StageError


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_thumbnails_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, thumbnails: list[bytes]
) -> None:
    npy = tmp_path_factory.getbasetemp() / "0123.npy"
    packthumbnails.write(npy, len(thumbnails), thumbnails)
    assert list(packthumbnails.read(npy, len(thumbnails))) == thumbnails
    file = packthumbnails.beside(npy)
    assert file.name == "0123.thumbnails"
    assert np.load(file).tolist() == np.cumsum([0, *map(len, thumbnails)]).tolist()
    assert file.read_bytes().endswith(b"".join(thumbnails))


def test_a_pack_of_an_older_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        StageError, match=r"^x\.thumbnails is missing: an older .* lookalike deploy --reprocess preproc"
    ):
        list(packthumbnails.read(tmp_path / "x.npy", 1))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    npy = tmp_path / "x.npy"
    packthumbnails.write(npy, 2, [b"one", b"two"])
    file = packthumbnails.beside(npy)
    whole = file.read_bytes()
    places = whole.index(b"\n") + 1
    longer = whole[: places + 8] + (2**63).to_bytes(8, "little") + whole[places + 16 :]
    for damaged in (whole[:-1], whole + b"x", whole[: places + 9], whole[:20], b"", longer):
        file.write_bytes(damaged)
        with pytest.raises(StageError, match=r"^x\.thumbnails is not a file of thumbnails \(.*; run preprocess again"):
            list(packthumbnails.read(npy, 2))
    file.write_bytes(whole)
    with pytest.raises(StageError, match=r"it holds uint64 \(3,\) for 3 pictures"):
        list(packthumbnails.read(npy, 3))
    np.save(tmp_path / "y", np.zeros(3))
    (tmp_path / "y.npy").rename(file)
    with pytest.raises(StageError, match=r"it holds float64 \(3,\) for 2 pictures"):
        list(packthumbnails.read(npy, 2))
