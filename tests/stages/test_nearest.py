"""The files of nearest pictures and of the pictures of a segment."""

from pathlib import Path

import numpy as np
import pytest

from stages.datum.contract import StageError
from stages.files.tables.nearest_table import NEAREST, PictureRows, as_nearest, read_nearest, write_nearest
from stages.files.vector_files import read_vectors
from stages.record.origin import Origin
from stages.record.sources import Source
from tests.stages.image_tables import unseen


def pictures(*ids: str) -> PictureRows:
    sources = [(Source(f"{id[:3]}.jpg", id), Source(f"copies/\udcff{id[:3]}.jpg", id)) for id in ids]
    return PictureRows(
        ids=ids,
        sources=sources,
        **unseen(len(ids)),
        origin=Origin("5eed" * 16, "pad", 96, 4, "a net at 96 px"),
        metric="euclidean",
        k=10,
    )


IDS = ("a0" * 32, "af" * 32)


def test_pictures_are_read_as_they_were_written(tmp_path: Path) -> None:
    pictures(*IDS).write(tmp_path / "a.parquet")
    read = PictureRows.read(tmp_path / "a.parquet")
    assert (list(read.ids), read.sources) == (list(IDS), pictures(*IDS).sources)
    assert read.origin == Origin("5eed" * 16, "pad", 96, 4, "a net at 96 px")
    assert (read.metric, read.k) == ("euclidean", 10)
    read.write(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "a.parquet").read_bytes()


def test_pictures_are_sorted() -> None:
    with pytest.raises(ValueError, match="distinct and sorted"):
        pictures(*reversed(IDS))


def test_another_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(StageError, match="not a table that lookalike wrote"):
        PictureRows.read(tmp_path / "a.parquet")


def test_nearest_are_read_as_they_were_written(tmp_path: Path) -> None:
    nearest = as_nearest(np.array([[1, 2], [0, 2]]), np.array([[0, 1.5], [0, 2]], np.float32))
    write_nearest(nearest, tmp_path / "b.npy")
    read = read_nearest(tmp_path / "b.npy")
    assert read.dtype == NEAREST and read.tolist() == [[(1, 0.0), (2, 1.5)], [(0, 0.0), (2, 2.0)]]


@pytest.mark.parametrize("other", [np.zeros((2, 2)), np.zeros(3, NEAREST), np.array([{}], object)])
def test_other_arrays_are_refused(other: object, tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", other, allow_pickle=True)  # type: ignore[arg-type]
    with pytest.raises(StageError, match=r"b\.npy"):
        read_nearest(tmp_path / "b.npy")


def test_a_damaged_header_is_refused(tmp_path: Path) -> None:
    write_nearest(as_nearest(np.zeros((2, 1), np.int64), np.zeros((2, 1), np.float32)), tmp_path / "b.npy")
    whole = (tmp_path / "b.npy").read_bytes()
    np.save(tmp_path / "v.npy", np.zeros((2, 1), np.float32))
    header = b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little")
    signs = header + b"-" * 8999 + b"1" + bytes(64)
    huge = whole.replace(b"(2, 1), }" + b" " * 11, b"(99999999999, 1), } ")
    assert huge != whole
    for broken, read in (
        (huge, read_nearest),
        *((signs, each) for each in (read_nearest, lambda path: read_vectors(path, 1))),
        (whole, read_nearest),
        ((tmp_path / "v.npy").read_bytes(), lambda path: read_vectors(path, 1)),
    ):
        (tmp_path / "b.npy").write_bytes(broken.replace(b"), }", b"(, }"))
        with pytest.raises(StageError, match=r"b\.npy"):
            read(tmp_path / "b.npy")
