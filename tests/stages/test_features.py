"""The features stage on plain directories and on pipes: its output, and its reasons for bad input."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from stages import devices, entrypaths, features, packthumbnails, thumbnailfiles
from stages.backbones import describe, forward, load_backbone, save_backbone
from stages.backbonespec import MODEL_FILE, SPEC_FILE, Weights, parse_spec
from stages.contract import Datum, Input, StageError
from stages.embedders import Embedder, passes_at_once
from stages.framing import CROP, PAD, Framing
from stages.packs import Picture, Rejection, read_rejections, write_pack, write_rejections
from stages.sources import Source
from stages.tables.images import read_images
from tests.stages.models import SmallModel

SIZE = 32


def pixels(number: int, size: int = SIZE) -> NDArray[np.uint8]:
    return np.random.default_rng(number).integers(0, 256, (size, size, 3), np.uint8)


def id_of(number: int) -> str:
    return hashlib.sha256(pixels(number).tobytes()).hexdigest()


# Three pictures whose ids begin with the same digit, as in a bucket.
OF_ONE_SEGMENT = [number for number in range(100) if id_of(number)[0] == id_of(0)[0]][:3]


def source(path: str) -> Source:
    return Source(path, hashlib.sha256(path.encode()).hexdigest())


def shown(path: str) -> bytes:
    """The thumbnail of a source: features passes it on as it is."""
    return b"jpeg of " + path.encode()


def pack(
    stem: Path, numbers: dict[int, str], size: int = SIZE, fit: str = PAD, inside: tuple[int, int] | None = None
) -> None:
    """Writes a pack of the numbered pictures, each from the source path given. inside: their size without padding."""
    chosen = sorted(numbers, key=id_of)
    pictures = [Picture(id_of(number), (source(numbers[number]),), inside or (size, size), number) for number in chosen]
    write_pack(
        stem.with_suffix(".npy"), Framing(size, fit), pictures, [pixels(number, size).tobytes() for number in chosen]
    )
    packthumbnails.write(stem.with_suffix(".npy"), len(chosen), [shown(numbers[number]) for number in chosen])


@pytest.fixture(scope="module")
def models(small_model: SmallModel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
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
    embedder = Embedder(forward(load_backbone(models / MODEL_FILE, spec)), spec)
    return embedder(np.stack([pixels(number) for number in sorted(numbers, key=id_of)]))


def datum(models: Path, pictures: Path, repo_path: str, out: Path, commit: str = "") -> Datum:
    inputs = [Input("models", models, "", commit), Input("pictures", pictures, repo_path, commit)]
    return Datum({each.name: each for each in inputs}, out)


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_part_becomes_vectors_and_tables_by_segment(models: dict[str, Path], tmp_path: Path) -> None:
    numbers = list(range(20))
    pack(tmp_path / "in/0123456789abcdef/aaaa", {number: f"{number}.png" for number in numbers})
    process = features.start({})
    process(datum(models["first"], tmp_path / "in/0123456789abcdef", "library/0123456789abcdef", tmp_path / "out"))
    segments = sorted((tmp_path / "out/library").iterdir())
    assert [each.name for each in segments] == sorted({id_of(number)[0] for number in numbers})
    ids: list[str] = []
    vectors = []
    for segment in segments:
        table = read_images(segment / "0123456789abcdef.parquet")
        assert {each[0] for each in table.ids} == {segment.name}
        ids += table.ids
        vectors.append(np.load(segment / "0123456789abcdef.npy"))
        assert len(vectors[-1]) == len(table)
    assert ids == sorted(map(id_of, numbers))
    np.testing.assert_array_equal(np.concatenate(vectors), expected(models["first"], numbers))


def test_a_bucket_becomes_vectors_and_a_table(models: dict[str, Path], tmp_path: Path) -> None:
    one, two, three = OF_ONE_SEGMENT
    bucket = tmp_path / "ab"
    pack(bucket / "aaaa", {one: "b.png", two: "c.png"})
    pack(bucket / "bbbb", {one: "a.png", three: "d.png"})  # a picture again, from another place
    process = features.start({})
    process(datum(models["first"], bucket, "library/ab", tmp_path / "out"))

    segment = tmp_path / "out/library" / id_of(one)[0]
    thumbnails = tmp_path / "out/thumbnails" / id_of(one)[0] / "ab.thumbnails"
    assert set((tmp_path / "out").rglob("*.*")) == {segment / "ab.npy", segment / "ab.parquet", thumbnails}
    vectors = np.load(segment / "ab.npy")
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, expected(models["first"], [one, two, three]))
    images = read_images(segment / "ab.parquet")
    assert list(images.ids) == sorted(id_of(number) for number in (one, two, three))
    assert dict(zip(images.ids, images.sources, strict=True)) == {
        id_of(one): (source("a.png"), source("b.png")),
        id_of(two): (source("c.png"),),
        id_of(three): (source("d.png"),),
    }
    assert (images.model, images.image_size, images.dimension) == (
        parse_spec((models["first"] / SPEC_FILE).read_bytes()).sha256,
        SIZE,
        4,
    )
    assert images.backbone == f"small at {SIZE} px"
    assert images.devices == (devices.kind(),)
    assert images.hashes == sorted((one, two, three), key=id_of)
    smallest = min(("a.png", "b.png"), key=lambda path: source(path).sha256)
    places = thumbnailfiles.places("ab", images.thumbnail_sizes)
    assert dict(zip(images.ids, map(thumbnailfiles.Files(thumbnails.parent).read, places), strict=True)) == {
        id_of(one): shown(smallest),
        id_of(two): shown("c.png"),
        id_of(three): shown("d.png"),
    }


def test_an_entry_of_queries_has_the_thumbnails_of_its_pack(models: dict[str, Path], tmp_path: Path) -> None:
    pack(tmp_path / "ab/aaaa", {1: "wide.png"}, inside=(SIZE, 6))
    features.start({})(datum(models["first"], tmp_path / "ab", "queries/e", tmp_path / "out"))
    out = tmp_path / "out" / entrypaths.directory("e")
    images = read_images(out / "images.parquet")
    assert (images.fit, images.thumbnail_sizes) == (PAD, [len(shown("wide.png"))])
    assert (out / "images.thumbnails").read_bytes() == shown("wide.png")
    np.testing.assert_array_equal(np.load(out / "vectors.npy"), expected(models["first"], [1]))


def test_packs_without_thumbnails_fail_with_a_reason(models: dict[str, Path], tmp_path: Path) -> None:
    pack(tmp_path / "ab/aaaa", {1: "a.png"})
    (tmp_path / "ab/aaaa.thumbnails").unlink()
    with pytest.raises(StageError, match=r"aaaa\.thumbnails is missing: .* lookalike deploy --reprocess preprocess"):
        features.start({})(datum(models["first"], tmp_path / "ab", "library/ab", tmp_path / "out"))


def test_pictures_of_two_fits_fail_with_a_reason(models: dict[str, Path], tmp_path: Path) -> None:
    pack(tmp_path / "ab/aaaa", {1: "a.png"}, fit=PAD)
    pack(tmp_path / "ab/bbbb", {2: "b.png"}, fit=CROP)
    with pytest.raises(StageError, match=r"^ab holds packs of 2 fits \(crop, pad\), not of one: reprocess"):
        features.start({})(datum(models["first"], tmp_path / "ab", "library/ab", tmp_path / "out"))


def test_the_packing_of_pictures_makes_no_difference(models: dict[str, Path], tmp_path: Path) -> None:
    names = {number: f"{number}.png" for number in range(40)}
    pack(tmp_path / "one/ab/aaaa", names)
    for number, name in names.items():
        pack(tmp_path / f"many/ab/{number:04}", {number: name})
    process = features.start({"SEGMENT_DIGITS": "2"})
    for kind in ("one", "many"):
        process(datum(models["first"], tmp_path / kind / "ab", "library/ab", tmp_path / "out" / kind))
    assert tree(tmp_path / "out/one") == tree(tmp_path / "out/many")
    assert {path.split("/")[1] for path in tree(tmp_path / "out/one")} == {id_of(number)[:2] for number in names}


def test_an_entry_keeps_its_rejections(models: dict[str, Path], tmp_path: Path) -> None:
    entry = tmp_path / "holiday"
    pack(entry / "aaaa", {1: "holiday/a.png"})
    rejected = [Rejection("holiday/z.txt", "preprocess", "no picture"), Rejection("holiday/b.gif", "preprocess", "cut")]
    write_rejections(entry / "aaaa.rejected.jsonl", rejected[:1])
    write_rejections(entry / "bbbb.rejected.jsonl", rejected[1:])
    features.start({})(datum(models["first"], entry, "queries/holiday", tmp_path / "out"))
    out = tmp_path / "out" / entrypaths.directory("holiday")
    assert tree(out).keys() == {"vectors.npy", "images.parquet", "images.thumbnails", "rejected.jsonl"}
    assert read_rejections(out / "rejected.jsonl") == rejected[::-1]
    assert list(read_images(out / "images.parquet").ids) == [id_of(1)]


def test_an_entry_without_a_good_picture_gives_an_empty_table(models: dict[str, Path], tmp_path: Path) -> None:
    pack(tmp_path / "entry/aaaa", {})
    features.start({})(datum(models["first"], tmp_path / "entry", "queries/entry", tmp_path / "out"))
    out = tmp_path / "out" / entrypaths.directory("entry")
    assert np.load(out / "vectors.npy").shape == (0, 4)
    assert len(read_images(out / "images.parquet")) == 0


class Pipes:
    """A directory of named pipes, as of a lazy input: each gives its content to the first reader only."""

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
    nothing = tmp_path / "nothing"  # the same commit is not read again
    process(datum(nothing, tmp_path / "ab", "library/ab", tmp_path / "out", "first"))
    assert tree(tmp_path / "out") == first

    second = Pipes(models["second"], tmp_path / "others")
    process(datum(second.directory, tmp_path / "ab", "library/ab", tmp_path / "out", "second"))
    assert sorted(second.opened) == [SPEC_FILE, MODEL_FILE]
    np.testing.assert_array_equal(
        np.load(tmp_path / "out/library" / id_of(1)[0] / "ab.npy"), expected(models["second"], [1])
    )


@pytest.fixture
def broken_models(models: dict[str, Path], tmp_path: Path) -> Iterator[dict[str, tuple[Path, str]]]:
    """Broken contents of the repo models, each with its reason."""
    found = {}
    for name, reason in {
        "empty": "the repo models does not hold a backbone: push one with: lookalike model push efficientnet-lite0",
        "no spec": "the repo models does not hold a backbone",
        "no spec's text": r"backbone\.json in the repo models is not a description of a backbone",
        "another model": r"backbone\.keras and backbone\.json in the repo models do not belong together",
        "cut short": r"backbone\.keras is not a \.keras file of Keras 3, or it is damaged",
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


def test_a_broken_model_fails_with_a_reason(broken_models: dict[str, tuple[Path, str]], tmp_path: Path) -> None:
    pack(tmp_path / "ab/aaaa", {1: "a.png"})
    for name, (directory, reason) in broken_models.items():
        process = features.start({})
        with pytest.raises(StageError, match=reason):
            process(datum(Pipes(directory, tmp_path / name).directory, tmp_path / "ab", "library/ab", tmp_path, name))


def test_pictures_of_another_size_fail_with_a_reason(models: dict[str, Path], tmp_path: Path) -> None:
    pack(tmp_path / "ab/aaaa", {1: "a.png"}, size=64)
    with pytest.raises(StageError, match=r"64 × 64 pixels, but the model small takes 32 × 32: `lookalike model push"):
        features.start({})(datum(models["first"], tmp_path / "ab", "library/ab", tmp_path / "out"))


def test_a_flaw_in_the_set_up_is_found_before_costly_imports(
    broken_models: dict[str, tuple[Path, str]], models: dict[str, Path], tmp_path: Path
) -> None:
    """A job with a wrong model fails datum by datum, each in a process of its own, and others wait behind it."""
    pack(tmp_path / "ab/aaaa", {1: "a.png"})
    pack(tmp_path / "cd/aaaa", {1: "a.png"}, size=64)
    (tmp_path / "ef").mkdir()
    (tmp_path / "ef/aaaa.npy").write_bytes(b"damaged")
    flaws = [(models["first"], "cd", "64 × 64 pixels"), (models["first"], "ef", r"aaaa\.npy cannot be read")]
    flaws += [(directory, "ab", reason) for directory, reason in broken_models.values()]
    runs = [
        [f"--input=models={model}", f"--input=pictures={tmp_path}::library/{part}", f"--out={tmp_path}/out"]
        for model, part, _ in flaws
    ]
    (tmp_path / "library").symlink_to(tmp_path)
    code = (
        "import sys\n"
        "from stages import contract\n"
        f"print([contract.run('stages.features', each) for each in {runs[:2]}])\n"
        "print([name for name in ('numpy', 'tensorflow', 'keras') if name in sys.modules])\n"
        f"print([contract.run('stages.features', each) for each in {runs[2:]}])\n"
        "print([name for name in ('tensorflow', 'keras') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert said == [str([1, 1]), "[]", str([1] * len(broken_models)), "[]"]
    complaints = done.stderr.splitlines()
    assert len(complaints) == len(flaws)
    for complaint, (_, _, reason) in zip(complaints, flaws, strict=True):
        assert re.search(reason, complaint)


def test_a_wrong_spec_fails_with_a_reason(models: dict[str, Path], tmp_path: Path) -> None:
    pack(tmp_path / "ab/aaaa", {1: "a.png"})
    with pytest.raises(StageError, match=r"must be /library/<part> or /queries/<entry>"):
        features.start({})(datum(models["first"], tmp_path / "ab", "ab", tmp_path / "out"))
    with pytest.raises(StageError, match="the input pictures is missing"):
        features.start({})(Datum({"models": Input("models", models["first"], "", "")}, tmp_path / "out"))
    with pytest.raises(StageError, match="SEGMENT_DIGITS='many'"):
        features.start({"SEGMENT_DIGITS": "many"})


def test_another_process_gives_the_same_bytes(lite0: Path, tiles: NDArray[np.uint8], tmp_path: Path) -> None:
    ids = [hashlib.sha256(tile.tobytes()).hexdigest() for tile in tiles]
    order = np.argsort(ids)
    pictures = [Picture(ids[row], (source(f"{row}.png"),), (96, 96)) for row in order]
    npy = tmp_path / "in/library/ab/aaaa.npy"
    write_pack(npy, Framing(96, PAD), pictures, [tiles[row].tobytes() for row in order])
    packthumbnails.write(npy, len(order), [shown(f"{row}.png") for row in order])
    command = [sys.executable, "-m", "stages.features", f"--input=models={lite0}"]
    command += [f"--input=pictures={tmp_path}/in::library/ab", f"--out={tmp_path}/there"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "loaded efficientnet-lite0" in done.stdout
    features.start({})(datum(lite0, tmp_path / "in/library/ab", "library/ab", tmp_path / "here"))
    assert tree(tmp_path / "there") == tree(tmp_path / "here")


_VECTORS = """
import hashlib, sys
from pathlib import Path
import numpy as np
from stages import forwards
from stages.backbonespec import MODEL_FILE, SPEC_FILE, parse_spec
home = Path(sys.argv[1])
spec = parse_spec((home / SPEC_FILE).read_bytes())
embedder = forwards.embedder(home / MODEL_FILE, spec, {}, many=sys.argv[3] == "many")
vectors = embedder(np.load(sys.argv[2]))
print(embedder.at_once, "keras" in sys.modules, hashlib.sha256(vectors.tobytes()).hexdigest())
"""


def test_neither_threads_nor_passes_at_once_change_a_vector(
    lite0: Path, tiles: NDArray[np.uint8], tmp_path: Path
) -> None:
    """A job may run on a machine with more cores than the one before."""
    np.save(tmp_path / "tiles.npy", tiles)

    def vectors(passes: str, **environment: str) -> list[str]:
        command = [sys.executable, "-c", _VECTORS, str(lite0), str(tmp_path / "tiles.npy"), passes]
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
        return done.stdout.split()[-3:]

    several, by_keras = str(passes_at_once()), {"TF_XLA_FLAGS": "--tf_xla_auto_jit=0"}
    found = [
        vectors("one", TF_NUM_INTRAOP_THREADS="1"),
        vectors("one", TF_NUM_INTRAOP_THREADS="3"),
        vectors("many"),
        vectors("one", **by_keras),
        vectors("many", **by_keras),
    ]
    assert [each[:2] for each in found] == [
        ["1", "False"], ["1", "False"], [several, "False"], ["1", "True"], [several, "True"]
    ]  # fmt: skip
    assert len({each[2] for each in found}) == 1
