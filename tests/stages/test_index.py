"""The index stage as in production: directories in, directories out, in this process and in its own."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stages import index
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files import thumbnail_files
from stages.files.segment_files import COARSE, read_coarse
from stages.files.tables.image_table import ImageTable, merge_images
from stages.files.tables.index_table import IndexTable
from stages.files.thumbnail_files import ThumbnailFiles, ThumbnailPlace, places
from stages.knn import code_index
from stages.knn.coarse_rows import CoarseRows, rounded
from stages.knn.vector_set import VectorSet
from stages.record.origin import Origin
from tests.stages.file_trees import tree
from tests.stages.image_tables import MODEL, image_table
from tests.stages.serving.segments import open_library, vectors_of

FILES = ["hashes.npy", "images.parquet", "index.json"]


def write_bucket(directory: Path, bucket: str, vectors: NDArray[np.floating[Any]], model: str = MODEL) -> list[str]:
    """One bucket in the form of the partition stage; its ids begin with the bucket's name."""
    directory.mkdir(parents=True, exist_ok=True)
    ids = sorted(f"{bucket}{row:062x}" for row in range(len(vectors)))
    thumbnails = [b"jpeg of " + id.encode() for id in ids]
    thumbnail_files.write(beside(directory) / f"{bucket}.thumbnails", thumbnails)
    write_vectors(directory, bucket, vectors)
    hashes = [int(hashlib.sha256(id.encode()).hexdigest()[:16], 16) for id in ids]
    origin = Origin(model, "pad", 96, vectors.shape[1], "a net at 96 px", ("cpu",))
    image_table(ids, 0, None, thumbnails, hashes, origin).write(directory / f"{bucket}.parquet")
    return ids


def write_vectors(segment: Path, bucket: str, vectors: NDArray[np.floating[Any]]) -> None:
    """Those of a bucket, beside a segment."""
    beside(segment, "vectors").mkdir(parents=True, exist_ok=True)
    np.save(beside(segment, "vectors") / f"{bucket}.npy", vectors.astype(np.float32))


def beside(segment: Path, kind: str = "thumbnails") -> Path:
    """The directory of the thumbnails of a segment of partition, or of its vectors."""
    return segment.parent / kind / segment.name


def merged(segment: Path) -> tuple[ImageTable, list[ThumbnailPlace]]:
    """The pictures of all buckets of a segment, and the places of their thumbnails."""
    tables = {path.stem: ImageTable.read(path) for path in sorted(segment.glob("*.parquet"))}
    images, origins = merge_images([*tables.values()])
    shown = [places(bucket, each.thumbnail_sizes) for bucket, each in tables.items()]
    return images, [shown[table][row] for table, row in origins]


def datum(source: Path, out: Path, by_reference: bool = False) -> Datum:
    inputs = [
        DatumInput("features", source, f"library/{source.name}", ""),
        *(DatumInput(kind, beside(source, kind), f"{kind}/{source.name}", "") for kind in ("vectors", "thumbnails")),
    ]
    return Datum({each.name: each for each in inputs}, out, by_reference)


def run(source: Path, out: Path, environment: Mapping[str, str] | None = None) -> Path:
    process = index.start({"CUDA_VISIBLE_DEVICES": "", **(environment or {})})
    process(datum(source, out))
    return out / source.name


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """Three buckets of segment a: 60 pictures, some of whose vectors are equal or nearly so."""
    random = np.random.default_rng(0)
    vectors = random.normal(size=(60, 12)).astype(np.float32)
    vectors[20:30] = vectors[0]
    vectors[40:50] += 1e-6 * random.normal(size=(10, 12)).astype(np.float32)
    source = tmp_path / "a"
    for bucket, rows in (("a0", slice(0, 25)), ("a7", slice(25, 26)), ("af", slice(26, 60))):
        write_bucket(source, bucket, vectors[rows])
    return source


def test_joins_the_buckets(segment: Path, tmp_path: Path) -> None:
    written = run(segment, tmp_path / "out")
    assert sorted(path.name for path in written.iterdir()) == sorted([*FILES, "thumbnails", "vectors"])
    given = [np.load(beside(segment, "vectors") / f"{each}.npy") for each in ("a0", "a7", "af")]
    assert np.array_equal(vectors_of(written), np.concatenate(given))
    images, _ = merged(segment)
    table = IndexTable.read(written / "images.parquet")
    assert (table.ids, table.sources) == (images.ids, images.sources)
    assert table.origin == replace(images.origin, devices=())
    files = ThumbnailFiles(written / "thumbnails")
    assert [files.read(place) for place in table.thumbnails] == [b"jpeg of " + id.encode() for id in images.ids]
    hashes = np.load(written / "hashes.npy")
    assert (hashes.dtype, hashes.tolist()) == (np.uint64, list(images.hashes))
    assert (written / "index.json").read_text() == (
        '{"backbone": "a net at 96 px", "count": 60, "devices": ["cpu"], "dimension": 12, "fit": "pad", '
        f'"image_size": 96, "metric": "euclidean", "model": "{MODEL}"}}\n'
    )


def test_annotations_are_passed_on_unread(segment: Path, tmp_path: Path) -> None:
    given = tmp_path / "annotations" / "a.parquet"
    given.parent.mkdir()
    given.write_bytes(b"what people state")
    plain = datum(segment, tmp_path / "out", by_reference=True)
    stated = DatumInput("annotations", given, "annotations/a.parquet", "")
    index.start({"CUDA_VISIBLE_DEVICES": ""})(replace(plain, inputs={**plain.inputs, "annotations": stated}))
    assert (tmp_path / "out" / "a" / "annotations.parquet").readlink() == given


def test_the_output_is_the_same_for_every_backend(tmp_path: Path) -> None:
    write_bucket(tmp_path / "b", "b0", np.random.default_rng(2).normal(size=(code_index.FEWEST, 8)))
    chosen = {"ALGORITHM": "ivfflat"}  # an exact index does not search
    outputs = [run(tmp_path / "b", tmp_path / each, {**chosen, "BACKEND": each}) for each in ("faiss", "auto")]
    for name in [*FILES, code_index.FILE]:
        assert len({(output / name).read_bytes() for output in outputs}) == 1


def test_the_index_of_an_older_version_is_read(segment: Path, tmp_path: Path) -> None:
    written = run(segment, tmp_path / "out")
    facts = json.loads((written / "index.json").read_text())
    (written / "index.json").write_text(json.dumps({**facts, "k": 3}, sort_keys=True) + "\n")
    np.save(written / "knn.npy", np.zeros((60, 3)))
    library = open_library([written])
    assert (len(library), library.metric) == (60, "euclidean")


@pytest.mark.parametrize(("count", "most"), [(1, 1), (15, 1), (16, 2), (60, 2), (64, 4), (1_000, 8), (5_000, 32)])
@pytest.mark.parametrize("segment", ["a", "7f"])
def test_pieces_are_ranges_of_ids_whose_number_follows_from_the_pictures(count: int, most: int, segment: str) -> None:
    ids = sorted(
        segment + hashlib.sha256(bytes([number % 256, number >> 8])).hexdigest()[2:] for number in range(count)
    )
    found = index.pieces(segment, ids)
    assert [row for piece in found for row in range(count)[piece.rows]] == list(range(count))
    names = [piece.name for piece in found]
    assert names == sorted(set(names))
    assert len(found) == most  # each has some, of so many
    for piece in found:
        assert {int(id[len(segment) :][:4], 16) * most >> 16 for id in ids[piece.rows]} == {int(piece.name, 16)}


@pytest.mark.parametrize("count", [1_023, 1_024, 5_000])
def test_large_segments_have_their_vectors_in_8_bits_too(count: int, tmp_path: Path) -> None:
    """In a quarter as many files, whose rows follow from the vectors alone."""
    ids = sorted("a" + hashlib.sha256(str(number).encode()).hexdigest()[1:] for number in range(count))
    vectors = np.random.default_rng(0).normal(size=(count, 5)).astype(np.float32)
    index.write_coarse(tmp_path, "a", ids, vectors)
    given = DatumInput("index", tmp_path, "a", "")
    assert (tmp_path / COARSE).exists() == (count > 1_023)
    if count > 1_023:
        assert len(list((tmp_path / COARSE).iterdir())) == len(index.pieces("a", ids)) // 4
        found = read_coarse(given, count, 5)
        assert found is not None
        points = VectorSet(vectors[:20])
        assert np.array_equal(found.lower_bounds(points), CoarseRows(rounded(vectors)).lower_bounds(points))
    else:
        assert read_coarse(given, count, 5) is None


def test_the_files_are_those_of_one_bucket(segment: Path, tmp_path: Path) -> None:
    images, shown = merged(segment)
    one, files = tmp_path / "one" / "a", ThumbnailFiles(beside(segment))
    thumbnail_files.write(beside(one) / "all.thumbnails", map(files.read, shown))
    write_vectors(one, "all", vectors_of(run(segment, tmp_path / "several")))
    one.mkdir()
    images.write(one / "all.parquet")
    assert tree(run(one, tmp_path / "out")) == tree(tmp_path / "several" / "a")


@pytest.mark.parametrize(("kind", "file"), [("vectors", "a7.npy"), ("thumbnails", "a7.thumbnails")])
def test_a_bucket_without_vectors_or_thumbnails_is_named(kind: str, file: str, segment: Path, tmp_path: Path) -> None:
    (beside(segment, kind) / file).unlink()
    with pytest.raises(
        StageError, match=f"segment a has no {kind} of bucket a7; .* lookalike deploy --reprocess partition"
    ):
        run(segment, tmp_path / "out")
    inputs = {name: each for name, each in datum(segment, tmp_path / "out").inputs.items() if name != kind}
    with pytest.raises(StageError, match=f"segment a has no {kind}: .*: lookalike upgrade; .* --reprocess partition$"):
        index.start({})(Datum(inputs, tmp_path / "out"))
    with pytest.raises(StageError, match="the input features is missing"):
        index.start({})(Datum({}, tmp_path / "out"))


def test_two_models_cannot_be_mixed(tmp_path: Path) -> None:
    write_bucket(tmp_path / "a", "a0", np.eye(3))
    write_bucket(tmp_path / "a", "a1", np.eye(3), model="beef" * 16)
    with pytest.raises(StageError, match=f"{MODEL}.*{'beef' * 16}"):
        run(tmp_path / "a", tmp_path / "out")


def test_codes_of_a_vector_that_is_not_finite_are_refused_with_its_picture(tmp_path: Path) -> None:
    """Without codes the index only copies vectors: features refuses them, and so do all that search."""
    vectors = np.eye(3)
    vectors[1, 1] = np.nan
    ids = write_bucket(tmp_path / "a", "a0", vectors)
    run(tmp_path / "a", tmp_path / "out")
    with pytest.raises(StageError, match=f"picture {ids[1]} has numbers that are NaN"):
        run(tmp_path / "a", tmp_path / "coded", {"ALGORITHM": "ivfflat"})


def test_a_directory_without_pictures(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(StageError, match="a does not hold pictures: .* that the partition stage wrote"):
        run(tmp_path / "a", tmp_path / "out")


@pytest.mark.parametrize(("name", "value"), [("METRIC", "manhattan"), ("BACKEND", "gpu"), ("ALGORITHM", "hnsw")])
def test_bad_parameters(name: str, value: str) -> None:
    with pytest.raises(StageError, match=f"{name}='{value}'"):
        index.start({name: value})
