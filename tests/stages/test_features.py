"""The features stage on plain directories and on pipes: its output, and its reasons for bad input."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from stages import features
from stages.backbone import devices
from stages.backbone.backbone_spec import MODEL_FILE, SCALE_FILE, SPEC_FILE, WeightsOrigin, parse_spec
from stages.backbone.backbones import describe, forward, load_backbone, save_backbone
from stages.backbone.embedder import Embedder, passes_at_once
from stages.backbone.text_tower import NO_WORDS, load_text_tower
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files import query_texts, thumbnail_files
from stages.files.packs import PackPicture, Rejection, read_rejections, write_rejections
from stages.files.tables.image_table import ImageTable
from stages.files.tables.index_table import PartTable
from stages.record import entry_paths, part_names
from stages.record.framing import CROP, PAD, Framing
from stages.record.sources import Source
from tests.pipes import Pipes
from tests.stages.file_trees import tree
from tests.stages.made_packs import as_compared, write_pixels
from tests.stages.models import SmallModel
from tests.stages.text_towers import write_text_tower

SIZE = 32


def pixels(number: int, size: int = SIZE) -> NDArray[np.uint8]:
    return np.random.default_rng(number).integers(0, 256, (size, size, 3), np.uint8)


def id_of(number: int) -> str:
    return hashlib.sha256(pixels(number).tobytes()).hexdigest()


def source(path: str) -> Source:
    return Source(path, hashlib.sha256(path.encode()).hexdigest())


def shown(path: str) -> bytes:
    """The thumbnail of a source: features passes on those of queries as they are."""
    return b"jpeg of " + path.encode()


def pack(
    stem: Path, numbers: dict[int, str], size: int = SIZE, fit: str = PAD, inside: tuple[int, int] | None = None
) -> None:
    """Writes a pack of the numbered pictures, each from the source path given, without thumbnails, which features does
    not read of the library. inside: their size without padding."""
    chosen = sorted(numbers, key=id_of)
    pictures = [
        PackPicture(
            id_of(number), (source(numbers[number]),), inside or (size, size), number, len(shown(numbers[number]))
        )
        for number in chosen
    ]
    write_pixels(stem.with_suffix(".pack"), Framing(size, fit), pictures, [pixels(number, size) for number in chosen])


def query_pack(stem: Path, numbers: dict[int, str], inside: tuple[int, int] | None = None) -> None:
    """Writes a pack of queries, with its thumbnails beside it."""
    pack(stem, numbers, inside=inside)
    thumbnail_files.write(
        stem.with_suffix(".thumbnails"), [shown(numbers[number]) for number in sorted(numbers, key=id_of)]
    )


@pytest.fixture(scope="module")
def models(small_model: SmallModel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two commits of the repo models."""
    found = {}
    for seed, commit in enumerate(("first", "second")):
        found[commit] = tmp_path_factory.mktemp(commit)
        model = small_model(SIZE, seed=seed)
        save_backbone(model, describe(model, "small", "avg", WeightsOrigin("a test", "")), found[commit])
    return found


def expected(models: Path, numbers: list[int], inside: tuple[int, int] | None = None) -> NDArray[np.float32]:
    """The vectors of the pictures in the order of their ids."""
    spec = parse_spec((models / SPEC_FILE).read_bytes())
    embedder = Embedder(forward(load_backbone(models / MODEL_FILE, spec)), spec)
    return embedder(np.stack([as_compared(pixels(number), inside) for number in sorted(numbers, key=id_of)]))


def datum(models: Path, pictures: Path, repo_path: str, out: Path, commit: str = "") -> Datum:
    inputs = [DatumInput("models", models, "", commit), DatumInput("pictures", pictures, repo_path, commit)]
    return Datum({each.name: each for each in inputs}, out)


def embedded(out: Path, part: str) -> PartTable:
    """The table of a part in the output."""
    return PartTable.read(out / "library" / part_names.directory(part) / f"{part}.parquet")


def vectors_of(out: Path, part: str) -> NDArray[np.float32]:
    """The vectors of a part in the output."""
    vectors: NDArray[np.float32] = np.load(out / "library" / part_names.directory(part) / f"{part}.npy")
    return vectors


def test_queries_get_the_models_scale_and_a_part_has_none(models: dict[str, Path], tmp_path: Path) -> None:
    scaled, out = shutil.copytree(models["first"], tmp_path / "models"), tmp_path / "out"
    (scaled / SCALE_FILE).write_bytes(b"a scale")
    pack(tmp_path / "ab" / "aaaa", {0: "b.png"})
    query_pack(tmp_path / "entry" / "aaaa", {0: "b.png"})
    stage = features.start({})
    stage(datum(scaled, tmp_path / "ab", "library/ab", out))
    stage(datum(scaled, tmp_path / "entry", "queries/entry", out))
    assert [each.relative_to(out) for each in out.rglob(SCALE_FILE)] == [
        Path(entry_paths.directory("entry")) / SCALE_FILE
    ]
    assert (out / entry_paths.directory("entry") / SCALE_FILE).read_bytes() == b"a scale"


def test_a_datum_of_the_models_files_names_one_of_them(models: dict[str, Path], tmp_path: Path) -> None:
    """As Pachyderm does for a group: see specs/features.json."""
    pack(tmp_path / "ab" / "aaaa", {0: "b.png"})
    given = datum(models["first"], tmp_path / "ab", "library/ab", tmp_path / "out")
    for name in (SPEC_FILE, MODEL_FILE):
        file = DatumInput("models", models["first"] / name, name, "")
        features.start({})(Datum({**given.inputs, "models": file}, tmp_path / name))
        np.testing.assert_array_equal(vectors_of(tmp_path / name, "ab"), expected(models["first"], [0]))


def test_a_part_of_several_packs_becomes_vectors_and_a_table(models: dict[str, Path], tmp_path: Path) -> None:
    bucket = tmp_path / "ab"
    pack(bucket / "aaaa", {0: "b.png", 1: "c.png"})
    pack(bucket / "bbbb", {0: "longer/a.png", 2: "d.png"})  # a picture again, from another place
    features.start({})(datum(models["first"], bucket, "library/ab", tmp_path / "out"))
    assert tree(tmp_path / "out").keys() == {
        f"library/{part_names.directory('ab')}/ab{suffix}" for suffix in (".npy", ".parquet")
    }
    vectors = vectors_of(tmp_path / "out", "ab")
    np.testing.assert_array_equal(vectors, expected(models["first"], [0, 1, 2]))
    images = embedded(tmp_path / "out", "ab")
    assert list(images.ids) == sorted(id_of(number) for number in (0, 1, 2))
    assert dict(zip(images.ids, images.sources, strict=True)) == {
        id_of(0): (source("b.png"), source("longer/a.png")),
        id_of(1): (source("c.png"),),
        id_of(2): (source("d.png"),),
    }
    assert (images.origin.model, images.origin.image_size, images.origin.dimension) == (
        parse_spec((models["first"] / SPEC_FILE).read_bytes()).sha256,
        SIZE,
        4,
    )
    assert images.origin.backbone == f"small at {SIZE} px"
    assert images.origin.devices == (devices.kind(),)
    assert list(images.hashes) == sorted((0, 1, 2), key=id_of)
    packs = {"aaaa": {0: "b.png", 1: "c.png"}, "bbbb": {0: "longer/a.png", 2: "d.png"}}
    for name, numbers in packs.items():
        ordered = [shown(numbers[number]) for number in sorted(numbers, key=id_of)]
        thumbnail_files.write(tmp_path / f"thumbnails/{name}.thumbnails", ordered)
    smallest = min(("b.png", "longer/a.png"), key=lambda path: source(path).sha256)
    files = thumbnail_files.ThumbnailFiles(tmp_path / "thumbnails")
    assert dict(zip(images.ids, map(files.read, images.thumbnails), strict=True)) == {
        id_of(0): shown(smallest),
        id_of(1): shown("c.png"),
        id_of(2): shown("d.png"),
    }


def test_an_entry_of_queries_has_the_thumbnails_of_its_pack(models: dict[str, Path], tmp_path: Path) -> None:
    query_pack(tmp_path / "ab/aaaa", {1: "wide.png"}, inside=(SIZE, 6))
    features.start({})(datum(models["first"], tmp_path / "ab", "queries/e", tmp_path / "out"))
    out = tmp_path / "out" / entry_paths.directory("e")
    images = ImageTable.read(out / "images.parquet")
    assert (images.origin.fit, list(images.thumbnail_sizes)) == (PAD, [len(shown("wide.png"))])
    assert (out / "images.thumbnails").read_bytes() == shown("wide.png")
    np.testing.assert_array_equal(np.load(out / "vectors.npy"), expected(models["first"], [1], (SIZE, 6)))


def test_a_query_in_two_packs_has_the_thumbnail_of_the_smallest_hash(models: dict[str, Path], tmp_path: Path) -> None:
    for name, numbers in (("aaaa", {1: "e/one.png", 2: "e/two.png"}), ("bbbb", {1: "e/again.png"})):
        query_pack(tmp_path / "e" / name, numbers)
    features.start({})(datum(models["first"], tmp_path / "e", "queries/e", tmp_path / "out"))
    out = tmp_path / "out" / entry_paths.directory("e")
    smallest = min(("e/one.png", "e/again.png"), key=lambda path: source(path).sha256)
    thumbnails = [shown({1: smallest, 2: "e/two.png"}[number]) for number in sorted((1, 2), key=id_of)]
    assert (out / "images.thumbnails").read_bytes() == b"".join(thumbnails)
    assert list(ImageTable.read(out / "images.parquet").thumbnail_sizes) == list(map(len, thumbnails))


def test_queries_without_their_thumbnails_fail_with_a_reason(models: dict[str, Path], tmp_path: Path) -> None:
    query_pack(tmp_path / "e/aaaa", {1: "a.png", 2: "b.png"})
    thumbnails = tmp_path / "e/aaaa.thumbnails"
    thumbnails.write_bytes(thumbnails.read_bytes()[:-1])
    process, again = features.start({}), r".* lookalike deploy --reprocess preprocess-queries$"
    for reason in ("is not the file of thumbnails that its table describes", "a file of thumbnails, is missing"):
        with pytest.raises(StageError, match=rf"^aaaa\.thumbnails,? {reason}: {again}"):
            process(datum(models["first"], tmp_path / "e", "queries/e", tmp_path / "out"))
        thumbnails.unlink(missing_ok=True)


def test_pictures_of_two_fits_fail_with_a_reason(models: dict[str, Path], tmp_path: Path) -> None:
    pack(tmp_path / "ab/aaaa", {1: "a.png"}, fit=PAD)
    pack(tmp_path / "ab/bbbb", {2: "b.png"}, fit=CROP)
    with pytest.raises(StageError, match=r"^ab holds packs of 2 fits \(crop, pad\), not of one: reprocess"):
        features.start({})(datum(models["first"], tmp_path / "ab", "library/ab", tmp_path / "out"))


def test_the_packing_of_pictures_makes_no_difference(models: dict[str, Path], tmp_path: Path) -> None:
    """But for the places of their thumbnails."""
    names = {number: f"{number}.png" for number in range(40)}
    pack(tmp_path / "one/ab/aaaa", names)
    for number, name in names.items():
        pack(tmp_path / f"many/ab/{number:04}", {number: name})
    process = features.start({})
    for kind in ("one", "many"):
        process(datum(models["first"], tmp_path / kind / "ab", "library/ab", tmp_path / "out" / kind))
    one, many = tmp_path / "out/one", tmp_path / "out/many"
    np.testing.assert_array_equal(vectors_of(one, "ab"), vectors_of(many, "ab"))
    images, same = embedded(one, "ab"), embedded(many, "ab")
    assert ImageTable.of(images) == ImageTable.of(same)
    assert list(same.thumbnails) == [
        thumbnail_files.ThumbnailPlace(f"{number:04}", 0, len(shown(names[number])))
        for number in sorted(names, key=id_of)
    ]


def test_an_entry_keeps_its_rejections_and_its_question(models: dict[str, Path], tmp_path: Path) -> None:
    entry = tmp_path / "holiday"
    query_pack(entry / "aaaa", {1: "holiday/a.png"})
    rejected = [Rejection("holiday/z.txt", "preprocess", "no picture"), Rejection("holiday/b.gif", "preprocess", "cut")]
    write_rejections(entry / "aaaa.rejected.jsonl", rejected[:1])
    write_rejections(entry / "bbbb.rejected.jsonl", rejected[1:])
    (entry / "aaaa.question.json").write_text('{"k": 2}\n')
    features.start({})(datum(models["first"], entry, "queries/holiday", tmp_path / "out"))
    out = tmp_path / "out" / entry_paths.directory("holiday")
    assert tree(out).keys() == {
        *("vectors.npy", "images.parquet", "images.thumbnails"),
        *("rejected.jsonl", "question.json"),
    }
    assert (out / "question.json").read_bytes() == b'{"k": 2}\n'
    assert read_rejections(out / "rejected.jsonl") == rejected[::-1]
    assert list(ImageTable.read(out / "images.parquet").ids) == [id_of(1)]


def test_an_entry_without_a_good_picture_gives_an_empty_table(models: dict[str, Path], tmp_path: Path) -> None:
    query_pack(tmp_path / "entry/aaaa", {})
    features.start({})(datum(models["first"], tmp_path / "entry", "queries/entry", tmp_path / "out"))
    out = tmp_path / "out" / entry_paths.directory("entry")
    assert np.load(out / "vectors.npy").shape == (0, 4)
    assert len(ImageTable.read(out / "images.parquet")) == 0


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
    np.testing.assert_array_equal(vectors_of(tmp_path / "out", "ab"), expected(models["second"], [1]))


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
    (tmp_path / "ef/aaaa.pack").write_bytes(b"damaged")
    (tmp_path / "former").mkdir()
    (tmp_path / "former/aaaa.npy").touch()
    flaws = [(models["first"], "cd", "64 × 64 pixels"), (models["first"], "ef", r"aaaa\.pack cannot be read")]
    flaws += [(models["first"], "former", r"older version of lookalike wrote the pack aaaa\.npy: `lookalike upgrade`")]
    flaws += [(directory, "ab", reason) for directory, reason in broken_models.values()]
    runs = [
        [f"--input=models={model}", f"--input=pictures={tmp_path}::library/{part}", f"--out={tmp_path}/out"]
        for model, part, _ in flaws
    ]
    (tmp_path / "library").symlink_to(tmp_path)
    code = (
        "import sys\n"
        "from stages.datum import contract\n"
        f"print([contract.run('stages.features', each) for each in {runs[:3]}])\n"
        "print([name for name in ('numpy', 'tensorflow', 'keras') if name in sys.modules])\n"
        f"print([contract.run('stages.features', each) for each in {runs[3:]}])\n"
        "print([name for name in ('tensorflow', 'keras') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert said == [str([1] * 3), "[]", str([1] * len(broken_models)), "[]"]
    complaints = done.stderr.splitlines()
    assert len(complaints) == len(flaws)
    for complaint, (_, _, reason) in zip(complaints, flaws, strict=True):
        assert re.search(reason, complaint)


def test_a_wrong_spec_fails_with_a_reason(models: dict[str, Path], tmp_path: Path) -> None:
    pack(tmp_path / "ab/aaaa", {1: "a.png"})
    with pytest.raises(StageError, match=r"must be /library/<part> or /queries/<entry>"):
        features.start({})(datum(models["first"], tmp_path / "ab", "ab", tmp_path / "out"))
    with pytest.raises(StageError, match="the input pictures is missing"):
        features.start({})(Datum({"models": DatumInput("models", models["first"], "", "")}, tmp_path / "out"))


def test_another_process_gives_the_same_bytes(lite0: Path, tiles: NDArray[np.uint8], tmp_path: Path) -> None:
    ids = [hashlib.sha256(tile.tobytes()).hexdigest() for tile in tiles]
    order = np.argsort(ids)
    pictures = [PackPicture(ids[row], (source(f"{row}.png"),), (96, 96)) for row in order]
    write_pixels(tmp_path / "in/library/ab/aaaa.pack", Framing(96, PAD), pictures, [tiles[row] for row in order])
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
from stages.backbone import embedder_factory
from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE, parse_spec
home = Path(sys.argv[1])
spec = parse_spec((home / SPEC_FILE).read_bytes())
for passes in sys.argv[3:]:
    embedder = embedder_factory.embedder(home / MODEL_FILE, spec, {}, many=passes == "many")
    vectors = embedder(np.load(sys.argv[2]))
    print("vectors", embedder.at_once, "keras" in sys.modules, hashlib.sha256(vectors.tobytes()).hexdigest())
"""


@pytest.mark.only_in_all
def test_neither_threads_nor_passes_at_once_change_a_vector(
    lite0: Path, tiles: NDArray[np.uint8], tmp_path: Path
) -> None:
    """A job may run on a machine with more cores than the one before."""
    np.save(tmp_path / "tiles.npy", tiles)

    def vectors(*passes: str, **environment: str) -> list[list[str]]:
        command = [sys.executable, "-c", _VECTORS, str(lite0), str(tmp_path / "tiles.npy"), *passes]
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
        return [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("vectors ")]

    several, by_keras = str(passes_at_once()), {"TF_XLA_FLAGS": "--tf_xla_auto_jit=0"}
    found = [
        *vectors("one", TF_NUM_INTRAOP_THREADS="1"),
        *vectors("one", TF_NUM_INTRAOP_THREADS="3"),
        *vectors("many"),
        *vectors("one", "many", **by_keras),
    ]
    assert [each[:2] for each in found] == [
        ["1", "False"], ["1", "False"], [several, "False"], ["1", "True"], [several, "True"]
    ]  # fmt: skip
    assert len({each[2] for each in found}) == 1


def test_the_words_of_an_entry_are_rows_beside_its_pictures(models: dict[str, Path], tmp_path: Path) -> None:
    entry, with_words = tmp_path / "trip", tmp_path / "models"
    query_pack(entry / "0a", {1: "trip/a.png"})
    asked = [("red bicycle in snow", ()), ("a cat", ("a dog", "snow"))]
    texts = [query_texts.make(text, others, source(f"trip/{text}.txt")) for text, others in asked]
    query_texts.write(entry / "0a.texts.jsonl", texts)
    shutil.copytree(models["first"], with_words)
    dimension = parse_spec((with_words / SPEC_FILE).read_bytes()).dimension
    write_text_tower(with_words, dimension)
    tower = load_text_tower(with_words)
    assert tower is not None
    stage, out = features.start({}), tmp_path / "out"
    stage(datum(with_words, entry, "queries/trip", out, "later"))
    made = out / entry_paths.directory("trip")
    images, vectors = ImageTable.read(made / "images.parquet"), np.load(made / "vectors.npy")
    rows = {id: vectors[row] for row, id in enumerate(images.ids)}
    assert list(rows) == sorted([id_of(1), *(each.id for each in texts)])
    assert np.array_equal(rows[id_of(1)], expected(models["first"], [1])[0])
    assert np.array_equal(rows[texts[0].id], tower.embed(["red bicycle in snow"])[0])
    cat, dog, snow = tower.embed(["a cat", "a dog", "snow"]).astype(np.float64)
    less = cat - (dog + snow) / 4
    np.testing.assert_allclose(rows[texts[1].id], less / np.linalg.norm(less), atol=1e-6)
    assert query_texts.read(made) == sorted(texts)
    assert {each.id: len(each.sources) for each in query_texts.read(made)} == {each.id: 1 for each in texts}
    sizes = dict(zip(images.ids, np.asarray(images.thumbnail_sizes).tolist(), strict=True))
    assert [sizes[each.id] for each in texts] == [0, 0]

    stage(datum(models["first"], entry, "queries/trip", tmp_path / "wordless", "earlier"))
    wordless = tmp_path / "wordless" / entry_paths.directory("trip")
    assert list(ImageTable.read(wordless / "images.parquet").ids) == [id_of(1)]
    rejected = read_rejections(wordless / "rejected.jsonl")
    assert {(each.source, each.stage, each.reason) for each in rejected} == {
        (f"trip/{text}.txt", "features", NO_WORDS) for text, _ in asked
    }
    write_text_tower(with_words, dimension + 1)
    with pytest.raises(StageError, match="they do not belong together"):
        features.start({})(datum(with_words, entry, "queries/trip", tmp_path / "other"))
