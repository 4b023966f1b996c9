"""The pictures of an index, mapped."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from stages.datum.contract import StageError
from stages.files.thumbnail_files import ThumbnailPlace
from stages.record.origin import Origin
from stages.record.sources import Source
from stages.serving.search.mapped_library import MappedLibrary
from tests.stages.serving.segments import MODEL, ids, open_library, write_index, write_segment

VECTORS = np.random.default_rng(0).normal(size=(21, 8))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("mapped") / "index"
    write_index(root, VECTORS)
    return root


@pytest.fixture
def directories(index: Path, tmp_path: Path) -> list[Path]:
    """Those of a copy of the index, which the test may change."""
    return sorted(shutil.copytree(index, tmp_path / "index").iterdir())


def test_every_picture_by_row_and_by_id(directories: list[Path]) -> None:
    library = open_library(list(reversed(directories)))
    every = [*ids("0", 6), *ids("2", 5), *ids("a", 5), *ids("f", 5)]
    assert len(library) == 21
    assert [library.id(row) for row in range(21)] == every
    assert [library.row(id) for id in every] == list(range(21))
    for row, id in enumerate(every):
        assert library.thumbnail(row) == b"jpeg of " + id.encode()
        assert library.sources(row) == (Source(f"trip/{id[:2]}/{id[-6:]}.jpg", id, 640, 480, 1000, ""),)
    assert [library.hash(row) for row in range(21)] == [*range(6), *range(5), *range(5), *range(5)]
    assert np.array_equal(np.concatenate([each.vectors for each in library.segments]), VECTORS.astype(np.float32))


def test_an_id_and_a_row_that_are_not_there(directories: list[Path]) -> None:
    library = open_library(directories)
    missing = ["", "0", "0" * 63, "0" * 65, "0" * 63 + "9", "1" + "0" * 63, "f" * 64, "é" * 64, "0\0"]
    assert [library.row(each) for each in missing] == [None] * len(missing)
    for row in (-1, 21):
        with pytest.raises(IndexError, match="21 pictures"):
            library.id(row)


def test_the_facts_of_all_segments(tmp_path: Path) -> None:
    write_segment(tmp_path / "0", ids("0", 2), VECTORS[:2], facts={"devices": ["cpu"]})
    write_segment(tmp_path / "1", ids("1", 2), VECTORS[:2], facts={"devices": ["NVIDIA H100", "cpu"]})
    library = open_library([tmp_path / "0", tmp_path / "1"])
    assert (len(library), library.metric) == (4, "euclidean")
    assert library.origin == Origin(MODEL, "pad", 96, 8, "small", ("NVIDIA H100", "cpu"))
    assert library.origin.described == f"small {MODEL} (IMAGE_SIZE=96, FIT=pad, 8 dimensions)"


def test_all_files_but_thumbnails_may_be_deleted_once_open(directories: list[Path]) -> None:
    library = open_library(directories)
    for directory in directories:
        shutil.rmtree(directory)
    with pytest.raises(
        StageError, match=r"^part1\.thumbnails, a file of thumbnails, is missing: .* deploy --reprocess"
    ):
        library.thumbnail(20)
    assert library.segments[3].vectors[4, 7] == np.float32(VECTORS[20, 7])


def test_an_index_without_segments() -> None:
    with pytest.raises(StageError, match="lookalike add"):
        open_library([])


def test_a_segment_without_pictures(directories: list[Path]) -> None:
    table = directories[1] / "images.parquet"
    pq.write_table(pq.read_table(table).slice(0, 0), table)
    with pytest.raises(StageError, match="segment 2 has no pictures; reprocess the index pipeline"):
        open_library(directories)


def test_segments_that_are_open_already(directories: list[Path]) -> None:
    """In any order, some of another library."""
    one, other = open_library(directories[:2]), open_library(directories[2:])
    read: list[str] = []

    def thumbnail(segment: str, place: ThumbnailPlace) -> bytes:
        read.append(f"{segment} {place.part}")
        return b"jpeg"

    library = MappedLibrary([*other.segments, *one.segments], thumbnail)
    assert [each.name for each in library.segments] == list("02af")
    assert library.segments[3] is other.segments[1]
    assert np.array_equal(library.vectors(np.arange(21)), VECTORS.astype(np.float32))
    assert (library.thumbnail(20), read) == (b"jpeg", ["f part1"])


def test_vectors_are_those_of_the_table_whatever_else_their_files_hold(directories: list[Path]) -> None:
    path = directories[0] / "vectors" / "part2.npy"
    np.save(path, np.concatenate([np.load(path), np.zeros((3, 8), np.float32)]))
    np.save(directories[0] / "vectors" / "foreign.npy", np.zeros((3, 8), np.float32))
    library = open_library(directories)
    assert np.array_equal(library.vectors(np.arange(21)), VECTORS.astype(np.float32))
    np.save(path, np.load(path)[:1])
    with pytest.raises(StageError, match=r"part2\.npy does not have one vector for each .* --reprocess index"):
        open_library(directories)


@pytest.mark.parametrize("name", ["index.json", "images.parquet", "vectors/part1.npy", "hashes.npy"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "other"])
def test_a_damaged_file_is_named_in_a_sentence(name: str, damage: str, directories: list[Path]) -> None:
    path = directories[2] / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "cut": content[: len(content) // 2], "other": b"anything else"}[damage])
    with pytest.raises(StageError) as failure:
        open_library(directories)
    assert "\n" not in str(failure.value)
    assert Path(name).stem in str(failure.value)


def test_an_index_of_an_older_version(directories: list[Path]) -> None:
    path = directories[0] / "index.json"
    facts = json.loads(path.read_text())
    del facts["devices"]
    path.write_text(json.dumps(facts))
    reason = "not one that this version of the index stage wrote; reprocess the index pipeline"
    with pytest.raises(StageError, match=reason):
        open_library(directories)


def test_segments_of_two_models(directories: list[Path], tmp_path: Path) -> None:
    write_segment(tmp_path / "index" / "b", ids("b", 2), VECTORS[:2], facts={"model": "0" * 64})
    with pytest.raises(StageError, match="segment a was computed with the model small 5eed.*segment b with small 0000"):
        open_library(sorted([*directories, tmp_path / "index" / "b"]))


def test_ids_out_of_order(tmp_path: Path) -> None:
    table = write_segment(tmp_path / "0", ids("0", 2), VECTORS[:2]) / "images.parquet"
    pq.write_table(pq.read_table(table).take([1, 0]), table)
    with pytest.raises(
        StageError, match="segment 0: .* must be distinct and sorted by ids; reprocess the index pipeline"
    ):
        open_library([tmp_path / "0"])
    write_segment(tmp_path / "1", ids("1", 2), VECTORS[:2])
    write_segment(tmp_path / "2", ids("1", 2), VECTORS[:2])
    with pytest.raises(StageError, match="segment 2 do not follow those of segment 1"):
        open_library([tmp_path / "1", tmp_path / "2"])


def test_numbers_of_rows_that_differ(directories: list[Path]) -> None:
    np.save(directories[0] / "hashes.npy", np.arange(3, dtype="<u8"))
    with pytest.raises(StageError, match="segment 0 has 3 hashes for 6 pictures"):
        open_library(directories)
