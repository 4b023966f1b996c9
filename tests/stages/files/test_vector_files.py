"""Vectors of some pictures put together out of several files, which may be pipes."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from stages.datum.contract import StageError
from stages.files.vector_files import VectorPlaces, read_vectors
from tests.example_counts import examples
from tests.pipes import piped


def places(files: list[str], taken: list[tuple[int, int]]) -> VectorPlaces:
    numbers, rows = np.array(taken, np.int64).reshape(-1, 2).T
    return VectorPlaces(files, numbers, rows)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.booleans(), st.data())
def test_each_row_is_that_of_its_place(sizes: list[int], pipes: bool, draw: st.DataObject) -> None:
    held = [np.random.default_rng(number).random((size, 3), np.float32) for number, size in enumerate(sizes)]
    every = [(number, row) for number, size in enumerate(sizes) for row in range(size)]
    taken = draw.draw(st.lists(st.sampled_from(every), max_size=12))
    names = [f"b{number}" for number in range(len(sizes))]
    with tempfile.TemporaryDirectory() as directory:
        needed = {number for number, _ in taken}
        for number in needed:  # no other is looked at
            path = Path(directory) / f"b{number}.npy"
            np.save(path, held[number])
            if pipes:
                content = path.read_bytes()
                path.unlink()
                piped(path, content)
        into = np.full((len(taken), 3), np.nan, np.float32)
        places(names, taken).copy(Path(directory), into, "partition")
    assert np.array_equal(into, np.array([held[number][row] for number, row in taken], np.float32).reshape(-1, 3))


def test_the_places_of_some_pictures() -> None:
    some = places(["a", "b"], [(0, 1), (1, 0), (0, 0)]).of([2, 1])
    assert (some.files, some.numbers.tolist(), some.rows.tolist(), len(some)) == (["a", "b"], [0, 1], [0, 0], 2)
    assert len(some.of([])) == 0


def test_vectors_are_written_as_one_file_that_nothing_changes(tmp_path: Path) -> None:
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.full((2, 3), ord(name), np.float32))
    found = places(["a", "b"], [(1, 1), (0, 0)]).written(tmp_path, tmp_path / "together.npy", 3, "partition")
    assert found.tolist() == np.load(tmp_path / "together.npy").tolist() == [[ord("b")] * 3, [ord("a")] * 3]
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 0


@pytest.mark.parametrize("pipe", [False, True])
@pytest.mark.parametrize("row", [2, -1])
def test_a_row_that_is_not_there_is_named_with_its_writer(pipe: bool, row: int, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((2, 3), np.float32))
    if pipe:
        content = (tmp_path / "a.npy").read_bytes()
        (tmp_path / "a.npy").unlink()
        piped(tmp_path / "a.npy", content)
    reason = r"^a\.npy does not have one vector for each picture .*: lookalike deploy --reprocess features$"
    with pytest.raises(StageError, match=reason):
        places(["a"], [(0, 0), (0, row)]).copy(tmp_path, np.empty((2, 3), np.float32), "features")


def test_a_disk_without_room_is_an_error_and_not_the_end_of_the_process(tmp_path: Path) -> None:
    """A write to a mapped page that the disk has no room for would be."""
    np.save(tmp_path / "a.npy", np.ones((2, 1000), np.float32))
    program = (
        "import resource, sys, pathlib, numpy as np; from stages.files.vector_files import VectorPlaces\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)); here = pathlib.Path(sys.argv[1])\n"
        "places = VectorPlaces(['a'], np.zeros(2, np.int64), np.arange(2))\n"
        "try: places.written(here, here / 'together.npy', 1000, 'partition')\n"
        "except OSError as error: print(error.strerror)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "File too large\n"


@pytest.mark.parametrize("pipe", [False, True])
@pytest.mark.parametrize(
    ("held", "reason"),
    [
        (np.ones((2, 2), np.float32), r"^v\.npy holds float32 of shape \(2, 2\), not float32 vectors of 3 dimensions$"),
        (np.ones((2, 3)), "holds float64"),
        (np.ones(3, np.float32), r"holds float32 of shape \(3,\)"),
        (np.array([[{}, {}, {}]]), r"^v\.npy is not a file of vectors: "),
        (b"", r"^v\.npy is not a file of vectors: "),
        (b"\x93NUMPY\x01\x00", r"^v\.npy is not a file of vectors: "),
        (b"\x93NUMPY\x09\x00" + bytes(200), r"^v\.npy is not a file of vectors: "),
    ],
)
def test_anything_else_is_refused(pipe: bool, held: bytes | NDArray[np.generic], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    if isinstance(held, bytes):
        path.write_bytes(held)
    else:
        np.save(path, held)
    if pipe:
        (tmp_path / "pipe").mkdir()
        path = piped(tmp_path / "pipe" / "v.npy", path.read_bytes())
    with pytest.raises(StageError, match=reason):
        read_vectors(path, 3)


@pytest.mark.parametrize("pipe", [False, True])
def test_a_file_that_ends_too_early_is_refused(pipe: bool, tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    np.save(path, np.ones((2, 3), np.float32))
    content = path.read_bytes()[:-1]
    path.unlink()
    piped(path, content) if pipe else path.write_bytes(content)
    with pytest.raises(StageError, match=r"^v\.npy is not a file of vectors: "):
        read_vectors(path, 3)


@pytest.mark.parametrize("pipe", [False, True])
def test_vectors_are_read_only_and_outlive_their_file(pipe: bool, tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    np.save(path, np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)))
    if pipe:
        content = path.read_bytes()
        path.unlink()
        piped(path, content)
    found = read_vectors(path, 3)
    path.unlink()
    assert found.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 0
