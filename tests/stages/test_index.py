"""The index stage as in production: directories in, directories out, in this process and in its own."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stages import index
from stages.contract import Datum, Input, StageError
from stages.knn import codes
from stages.serving.library import Library
from stages.sources import Source
from stages.tables.images import Images, merge_images, read_images, write_images
from stages.tables.indexed import Thumbnails, read_indexed

MODEL = "5eed" * 16
FILES = ["hashes.npy", "images.parquet", "index.json", "thumbnails.arrow", "vectors.npy"]


def write_bucket(
    directory: Path,
    bucket: str,
    vectors: NDArray[np.floating[Any]],
    model: str = MODEL,
    dimension: int = 0,
    device: str = "cpu",
) -> list[str]:
    """One bucket in the form of the features stage; its ids begin with the bucket's name."""
    directory.mkdir(parents=True, exist_ok=True)
    ids = sorted(f"{bucket}{row:062x}" for row in range(len(vectors)))
    images = Images(
        ids=ids,
        sources=[(Source(f"{id[:6]}.jpg", id),) for id in ids],
        thumbnails=[b"jpeg of " + id.encode() for id in ids],
        hashes=[int(hashlib.sha256(id.encode()).hexdigest()[:16], 16) for id in ids],
        model=model,
        image_size=96,
        fit="pad",
        dimension=dimension or vectors.shape[1],
        backbone="a net at 96 px",
        devices=(device,),
    )
    write_images(images, directory / f"{bucket}.parquet")
    np.save(directory / f"{bucket}.npy", vectors.astype(np.float32))
    return ids


def run(source: Path, out: Path, environment: Mapping[str, str] | None = None) -> Path:
    process = index.start({"CUDA_VISIBLE_DEVICES": "", **(environment or {})})
    process(Datum({"features": Input("features", source, f"library/{source.name}", "")}, out))
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
    assert sorted(path.name for path in written.iterdir()) == FILES
    vectors = np.load(written / "vectors.npy")
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, np.concatenate([np.load(segment / f"{each}.npy") for each in ("a0", "a7", "af")]))
    images = merge_images([read_images(segment / f"{each}.parquet") for each in ("a0", "a7", "af")])
    table = read_indexed(written / "images.parquet")
    assert (table.ids, table.sources, table.described) == (images.ids, images.sources, images.described)
    thumbnails = Thumbnails(written / "thumbnails.arrow")
    assert list(thumbnails) == thumbnails[:] == images.thumbnails
    assert thumbnails[17] == images.thumbnails[17]
    hashes = np.load(written / "hashes.npy")
    assert (hashes.dtype, hashes.tolist()) == (np.uint64, images.hashes)
    assert (written / "index.json").read_text() == (
        '{"backbone": "a net at 96 px", "count": 60, "devices": ["cpu"], "dimension": 12, "fit": "pad", '
        f'"image_size": 96, "metric": "euclidean", "model": "{MODEL}"}}\n'
    )


def test_the_output_is_the_same_for_every_backend(tmp_path: Path) -> None:
    write_bucket(tmp_path / "b", "b0", np.random.default_rng(2).normal(size=(codes.FEWEST, 8)))
    chosen = {"ALGORITHM": "ivfflat"}  # an exact index does not search
    outputs = [run(tmp_path / "b", tmp_path / each, {**chosen, "BACKEND": each}) for each in ("faiss", "auto")]
    for name in [*FILES, codes.FILE]:
        assert len({(output / name).read_bytes() for output in outputs}) == 1


def test_a_segment_of_one_picture(tmp_path: Path) -> None:
    write_bucket(tmp_path / "b", "b0", np.eye(1, 4))
    written = run(tmp_path / "b", tmp_path / "out")
    assert np.load(written / "vectors.npy").tolist() == [[1, 0, 0, 0]]
    assert json.loads((written / "index.json").read_text())["count"] == 1


def test_the_index_of_an_older_version_is_read(segment: Path, tmp_path: Path) -> None:
    written = run(segment, tmp_path / "out")
    facts = json.loads((written / "index.json").read_text())
    (written / "index.json").write_text(json.dumps({**facts, "k": 3}, sort_keys=True) + "\n")
    np.save(written / "knn.npy", np.zeros((60, 3)))
    library = Library.open([written])
    assert (len(library), library.facts.metric) == (60, "euclidean")


def test_more_thumbnails_than_one_batch_holds(tmp_path: Path) -> None:
    write_bucket(tmp_path / "b", "b0", np.random.default_rng(1).normal(size=(5_000, 2)))
    one, other = run(tmp_path / "b", tmp_path / "one"), run(tmp_path / "b", tmp_path / "other")
    thumbnails = Thumbnails(one / "thumbnails.arrow")
    assert list(thumbnails) == thumbnails[:] == read_images(tmp_path / "b" / "b0.parquet").thumbnails
    assert (one / "thumbnails.arrow").read_bytes() == (other / "thumbnails.arrow").read_bytes()


def test_names_the_devices_that_computed_the_vectors(tmp_path: Path) -> None:
    for bucket, device in (("a0", "cpu"), ("a1", "NVIDIA L4"), ("a2", "cpu")):
        write_bucket(tmp_path / "a", bucket, np.eye(3), device=device)
    written = run(tmp_path / "a", tmp_path / "out")
    assert json.loads((written / "index.json").read_text())["devices"] == ["NVIDIA L4", "cpu"]


def test_the_service_opens_what_the_stage_writes(segment: Path, tmp_path: Path) -> None:
    written = run(segment, tmp_path / "out", {"METRIC": "cosine"})
    library = Library.open([written])
    images = merge_images([read_images(path) for path in sorted(segment.glob("*.parquet"))])
    assert [library.id(row) for row in range(len(library))] == images.ids
    assert [library.thumbnail(row) for row in range(len(library))] == images.thumbnails
    assert [library.sources(row) for row in range(len(library))] == list(images.sources)
    assert [library.hash(row) for row in range(len(library))] == images.hashes
    assert (library.facts.metric, library.facts.devices) == ("cosine", ("cpu",))
    assert np.array_equal(library.vectors(np.arange(60)), np.load(written / "vectors.npy"))


def test_two_models_cannot_be_mixed(tmp_path: Path) -> None:
    write_bucket(tmp_path / "a", "a0", np.eye(3))
    write_bucket(tmp_path / "a", "a1", np.eye(3), model="beef" * 16)
    with pytest.raises(StageError, match=f"{MODEL}.*{'beef' * 16}"):
        run(tmp_path / "a", tmp_path / "out")


def test_a_vector_that_is_not_finite_names_its_picture(tmp_path: Path) -> None:
    vectors = np.eye(3)
    vectors[1, 1] = np.nan
    ids = write_bucket(tmp_path / "a", "a0", vectors)
    with pytest.raises(StageError, match=f"picture {ids[1]} has numbers that are NaN"):
        run(tmp_path / "a", tmp_path / "out")


def test_vectors_that_do_not_fit_their_table(tmp_path: Path) -> None:
    write_bucket(tmp_path / "a", "a0", np.eye(3))
    for wrong, reason in (
        (np.eye(4, 3, dtype=np.float32), "does not have one vector for each picture"),
        (np.eye(2, 3, dtype=np.float32), "does not have one vector for each picture"),
        (np.eye(3, 2, dtype=np.float32), "not float32 vectors of 3 dimensions"),
        (np.eye(3), "float64"),
    ):
        np.save(tmp_path / "a" / "a0.npy", wrong)
        with pytest.raises(StageError, match=reason):
            run(tmp_path / "a", tmp_path / "out")
    (tmp_path / "a" / "a0.npy").write_bytes(b"\x93NUMPY broken")
    with pytest.raises(StageError, match=r"a0\.npy is not a file of vectors"):
        run(tmp_path / "a", tmp_path / "out")
    (tmp_path / "a" / "a0.npy").unlink()
    with pytest.raises(StageError, match=r"a0\.npy is missing"):
        run(tmp_path / "a", tmp_path / "out")


def test_the_parts_of_the_pictures_make_no_difference(segment: Path, tmp_path: Path) -> None:
    whole = merge_images([read_images(path) for path in sorted(segment.glob("*.parquet"))])
    vectors = np.concatenate([np.load(path) for path in sorted(segment.glob("*.npy"))])
    parted = tmp_path / "parted" / "a"
    parted.mkdir(parents=True)
    for number, rows in enumerate((slice(0, 60, 3), slice(1, 60, 3), slice(2, 60, 3), slice(10, 20))):
        write_images(whole.part(rows), parted / f"{number}.parquet")
        np.save(parted / f"{number}.npy", vectors[rows])
    one, other = run(segment, tmp_path / "one"), run(parted, tmp_path / "other")
    for path in one.iterdir():
        assert path.read_bytes() == (other / path.name).read_bytes()


def test_a_directory_without_pictures(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(StageError, match="a does not hold pictures"):
        run(tmp_path / "a", tmp_path / "out")


@pytest.mark.parametrize(("name", "value"), [("METRIC", "manhattan"), ("BACKEND", "gpu"), ("ALGORITHM", "hnsw")])
def test_bad_parameters(name: str, value: str) -> None:
    with pytest.raises(StageError, match=f"{name}='{value}'"):
        index.start({name: value})


def test_runs_as_a_program(segment: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stages.index", "--input", f"features={segment}", "--out", str(tmp_path / "two")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "index: segment a: 60 pictures" in done.stdout
    written = run(segment, tmp_path / "one")
    for path in written.iterdir():
        assert path.read_bytes() == (tmp_path / "two" / "a" / path.name).read_bytes()


def test_a_bad_datum_ends_the_program_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    command = [sys.executable, "-m", "stages.index", "--input", f"features={tmp_path / 'a'}", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("index: a does not hold pictures")
    assert done.stderr.count("\n") == 1
