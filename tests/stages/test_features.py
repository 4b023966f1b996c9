"""The stage features on plain directories and on pipes: what it writes, and what it says of bad input."""

import hashlib
import io
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from stages import features
from stages.backbones import describe, load_backbone, save_backbone
from stages.backbonespec import MODEL_FILE, SPEC_FILE, Weights, parse_spec
from stages.contract import Datum, Input, StageError
from stages.embedders import Embedder
from stages.packs import Picture, Rejection, Source, read_rejections, write_pack, write_rejections
from stages.tables import read_images

SIZE = 32


def pixels(number: int, size: int = SIZE) -> NDArray[np.uint8]:
    return np.random.default_rng(number).integers(0, 256, (size, size, 3), np.uint8)


def id_of(number: int) -> str:
    return hashlib.sha256(pixels(number).tobytes()).hexdigest()


def source(path: str) -> Source:
    return Source(path, hashlib.sha256(path.encode()).hexdigest())


def pack(stem: Path, numbers: dict[int, str], size: int = SIZE) -> None:
    """Writes a pack of the numbered pictures, each from the source path given."""
    chosen = sorted(numbers, key=id_of)
    pictures = [Picture(id_of(number), (source(numbers[number]),)) for number in chosen]
    write_pack(stem, (size, size), pictures, [pixels(number, size).tobytes() for number in chosen])


@pytest.fixture(scope="module")
def models(small_model, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two commits of the repo models."""
    found = {}
    for seed, commit in enumerate(("first", "second")):
        found[commit] = tmp_path_factory.mktemp(commit)
        model = small_model(SIZE, seed=seed)
        save_backbone(model, describe(model, "small", "avg", Weights("a test", "")), found[commit])
    return found


def expected(models: Path, numbers: list[int]) -> NDArray[np.float32]:
    """The vectors of the pictures in the order of their ids."""
    spec = parse_spec((models / SPEC_FILE).read_bytes())
    embedder = Embedder(load_backbone(models / MODEL_FILE, spec), spec)
    return embedder(np.stack([pixels(number) for number in sorted(numbers, key=id_of)]))


def datum(models: Path, pictures: Path, repo_path: str, out: Path, commit: str = "") -> Datum:
    inputs = [Input("models", models, "", commit), Input("pictures", pictures, repo_path, commit)]
    return Datum({each.name: each for each in inputs}, out)


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_bucket_becomes_vectors_and_a_table(models: dict[str, Path], tmp_path: Path) -> None:
    bucket = tmp_path / "ab"
    pack(bucket / "aaaa", {1: "b.png", 2: "c.png"})
    pack(bucket / "bbbb", {1: "a.png", 3: "d.png"})  # picture 1 again, from another place
    process = features.start({})
    process(datum(models["first"], bucket, "library/ab", tmp_path / "out"))

    assert tree(tmp_path / "out").keys() == {"library/a/ab.npy", "library/a/ab.parquet"}
    vectors = np.load(tmp_path / "out/library/a/ab.npy")
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, expected(models["first"], [1, 2, 3]))
    images = read_images(tmp_path / "out/library/a/ab.parquet")
    assert list(images.ids) == sorted(id_of(number) for number in (1, 2, 3))
    assert dict(zip(images.ids, images.sources, strict=True)) == {
        id_of(1): (source("a.png"), source("b.png")),
        id_of(2): (source("c.png"),),
        id_of(3): (source("d.png"),),
    }
    assert (images.model, images.image_size, images.dimension) == (
        parse_spec((models["first"] / SPEC_FILE).read_bytes()).sha256,
        SIZE,
        4,
    )
    for number in (1, 2, 3):
        thumbnail = Image.open(io.BytesIO(images.thumbnails[list(images.ids).index(id_of(number))]))
        assert (thumbnail.format, thumbnail.size) == ("JPEG", (SIZE, SIZE))


def test_how_pictures_are_packed_makes_no_difference(models: dict[str, Path], tmp_path: Path) -> None:
    names = {number: f"{number}.png" for number in range(40)}
    pack(tmp_path / "one/ab/aaaa", names)
    for number, name in names.items():
        pack(tmp_path / f"many/ab/{number:04}", {number: name})
    process = features.start({"SEGMENT_DIGITS": "2"})
    for kind in ("one", "many"):
        process(datum(models["first"], tmp_path / kind / "ab", "library/ab", tmp_path / "out" / kind))
    assert tree(tmp_path / "out/one") == tree(tmp_path / "out/many")
    assert tree(tmp_path / "out/one").keys() == {"library/ab/ab.npy", "library/ab/ab.parquet"}


def test_an_entry_keeps_what_was_rejected(models: dict[str, Path], tmp_path: Path) -> None:
    entry = tmp_path / "holiday"
    pack(entry / "aaaa", {1: "holiday/a.png"})
    rejected = [Rejection("holiday/z.txt", "preprocess", "no picture"), Rejection("holiday/b.gif", "preprocess", "cut")]
    write_rejections(entry / "aaaa.rejected.jsonl", rejected[:1])
    write_rejections(entry / "bbbb.rejected.jsonl", rejected[1:])
    features.start({})(datum(models["first"], entry, "queries/holiday", tmp_path / "out"))
    out = tmp_path / "out/queries/holiday"
    assert tree(out).keys() == {"vectors.npy", "images.parquet", "rejected.jsonl"}
    assert read_rejections(out / "rejected.jsonl") == rejected[::-1]
    assert list(read_images(out / "images.parquet").ids) == [id_of(1)]


def test_an_entry_without_a_good_picture_gives_an_empty_table(models: dict[str, Path], tmp_path: Path) -> None:
    pack(tmp_path / "entry/aaaa", {})
    features.start({})(datum(models["first"], tmp_path / "entry", "queries/entry", tmp_path / "out"))
    assert np.load(tmp_path / "out/queries/entry/vectors.npy").shape == (0, 4)
    assert len(read_images(tmp_path / "out/queries/entry/images.parquet")) == 0


class Pipes:
    """A directory of named pipes like a lazy input's: each gives its content to the first reader only."""

    def __init__(self, content: Path, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        self.opened: list[str] = []
        for path in content.iterdir():
            os.mkfifo(directory / path.name)
            threading.Thread(target=self._feed, args=(directory / path.name, path.read_bytes()), daemon=True).start()

    def _feed(self, pipe: Path, content: bytes) -> None:
        with pipe.open("wb") as file:
            self.opened.append(pipe.name)
            file.write(content)


def test_a_lazy_model_is_read_once_per_commit(models: dict[str, Path], tmp_path: Path) -> None:
    pack(tmp_path / "ab/aaaa", {1: "a.png"})
    process = features.start({})
    pipes = Pipes(models["first"], tmp_path / "pipes")
    process(datum(pipes.directory, tmp_path / "ab", "library/ab", tmp_path / "out", "first"))
    assert sorted(pipes.opened) == [SPEC_FILE, MODEL_FILE]
    first = tree(tmp_path / "out")

    shutil.rmtree(tmp_path / "out")
    nothing = tmp_path / "nothing"  # the same commit is not looked at again
    process(datum(nothing, tmp_path / "ab", "library/ab", tmp_path / "out", "first"))
    assert tree(tmp_path / "out") == first

    second = Pipes(models["second"], tmp_path / "others")
    process(datum(second.directory, tmp_path / "ab", "library/ab", tmp_path / "out", "second"))
    assert sorted(second.opened) == [SPEC_FILE, MODEL_FILE]
    np.testing.assert_array_equal(np.load(tmp_path / "out/library/a/ab.npy"), expected(models["second"], [1]))


@pytest.fixture
def broken_models(models: dict[str, Path], tmp_path: Path) -> Iterator[dict[str, tuple[Path, str]]]:
    """Contents of the repo models that do not work, each with what is said of it."""
    found = {}
    for name, reason in {
        "empty": "the repo models holds no backbone: push one with: lookalike model push efficientnet-lite0",
        "no spec": "the repo models holds no backbone",
        "no spec's text": r"backbone\.json in the repo models is not a backbone's description",
        "another model": r"backbone\.keras and backbone\.json in the repo models do not belong together",
        "cut short": r"backbone\.keras is not a \.keras file of Keras 3, or damaged",
    }.items():
        directory = tmp_path / "models" / name
        shutil.copytree(models["first"], directory)
        found[name] = (directory, reason)
    shutil.rmtree(found["empty"][0])
    found["empty"][0].mkdir()
    (found["no spec"][0] / SPEC_FILE).unlink()
    (found["no spec's text"][0] / SPEC_FILE).write_text("{}")
    shutil.copy(models["second"] / MODEL_FILE, found["another model"][0])
    os.truncate(found["cut short"][0] / MODEL_FILE, 2000)
    yield found


def test_a_model_that_does_not_work_is_a_reason(broken_models: dict[str, tuple[Path, str]], tmp_path: Path) -> None:
    pack(tmp_path / "ab/aaaa", {1: "a.png"})
    for name, (directory, reason) in broken_models.items():
        process = features.start({})
        with pytest.raises(StageError, match=reason):
            process(datum(Pipes(directory, tmp_path / name).directory, tmp_path / "ab", "library/ab", tmp_path, name))


def test_pictures_of_another_size_are_a_reason(models: dict[str, Path], tmp_path: Path) -> None:
    pack(tmp_path / "ab/aaaa", {1: "a.png"}, size=64)
    with pytest.raises(StageError, match=r"64 × 64 pixels, but the model .* takes 32 × 32: set IMAGE_SIZE=32"):
        features.start({})(datum(models["first"], tmp_path / "ab", "library/ab", tmp_path / "out"))


def test_a_wrong_spec_is_a_reason(models: dict[str, Path], tmp_path: Path) -> None:
    pack(tmp_path / "ab/aaaa", {1: "a.png"})
    with pytest.raises(StageError, match=r"must be /library/<bucket> or /queries/<entry>"):
        features.start({})(datum(models["first"], tmp_path / "ab", "ab", tmp_path / "out"))
    with pytest.raises(StageError, match=r"SEGMENT_DIGITS=3 is more than the 2 digits of the bucket ab"):
        features.start({"SEGMENT_DIGITS": "3"})(datum(models["first"], tmp_path / "ab", "library/ab", tmp_path / "out"))
    with pytest.raises(StageError, match="the input pictures is missing"):
        features.start({})(Datum({"models": Input("models", models["first"], "", "")}, tmp_path / "out"))
    with pytest.raises(StageError, match="SEGMENT_DIGITS='many'"):
        features.start({"SEGMENT_DIGITS": "many"})


def test_another_process_gives_the_same_bytes(lite0: Path, tiles: NDArray[np.uint8], tmp_path: Path) -> None:
    """Also with another number of threads: a job may run on a machine with more cores than the one before."""
    ids = [hashlib.sha256(tile.tobytes()).hexdigest() for tile in tiles]
    order = np.argsort(ids)
    pictures = [Picture(ids[row], (source(f"{row}.png"),)) for row in order]
    write_pack(tmp_path / "in/library/ab/aaaa", (96, 96), pictures, [tiles[row].tobytes() for row in order])
    command = [sys.executable, "-m", "stages.features", f"--input=models={lite0}"]
    command += [f"--input=pictures={tmp_path}/in::library/ab", f"--out={tmp_path}/there"]
    done = subprocess.run(
        command, env={**os.environ, "TF_NUM_INTRAOP_THREADS": "1"}, capture_output=True, text=True, check=True
    )
    assert "loaded efficientnet-lite0" in done.stdout
    assert "37 of 37 pictures" in done.stdout
    features.start({})(datum(lite0, tmp_path / "in/library/ab", "library/ab", tmp_path / "here"))
    assert tree(tmp_path / "there") == tree(tmp_path / "here")
