"""The neighbours stage as in production: segments of the index in, pairs out, lazy or not."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageEnhance

from stages import index, neighbours
from stages.datum.contract import Datum, DatumInput, StageError
from stages.decode.perceptual_hash import perceptual_hash
from stages.files import thumbnail_files
from stages.files.tables.pair_table import PairTable
from stages.quality import copy_pairs
from stages.record.hashes import NO_VERDICT, TURNS
from stages.record.origin import Origin
from stages.record.sources import Source
from tests.pipes import Pipes
from tests.stages.file_trees import tree
from tests.stages.image_tables import MODEL, image_table
from tests.stages.scenes import lain, saved, scene

CPU = {"CUDA_VISIBLE_DEVICES": ""}
NAMES = ("3", "8", "d")

NOTHING: Mapping[int, int] = {}
FAMILIES = {"3": dict.fromkeys(range(10, 16), 0), "8": dict.fromkeys(range(5), 0) | {20: 1}, "d": {2: 1}}
"""The scenes that pictures of the fixture's segments share."""

Tree = dict[str, bytes]


def pictured(shown: Image.Image, number: int) -> bytes:
    """A thumbnail, a little darker or brighter."""
    return saved(ImageEnhance.Brightness(shown).enhance(1 - number % 7 / 50), "JPEG")


def write_segment(
    root: Path,
    name: str,
    vectors: NDArray[np.floating[Any]],
    model: str = MODEL,
    scenes: Mapping[int, int] = NOTHING,
    turns: int = 1,
) -> None:
    """A segment as the index stage writes it; every fifth picture has two sources. scenes: what the pictures in some
    rows show, each a copy that is a little darker or brighter; every other one shows something of its own. turns: the
    ways in which pictures lie, one row after the other."""
    ids = [f"{name}{row:063x}" for row in range(len(vectors))]
    shows = [lain(scene(scenes.get(row, int(id[:8] + id[-4:], 16) + 1000)), row % turns) for row, id in enumerate(ids)]
    thumbnails = [pictured(shown, row) for row, shown in enumerate(shows)]
    sources = [(Source(f"{name}{row}.jpg", id), Source("copy", id))[: 1 + (row % 5 == 0)] for row, id in enumerate(ids)]
    hashes = [perceptual_hash(np.asarray(shown)) for shown in shows]
    origin = Origin(model, "pad", 96, vectors.shape[1], "a net at 96 px")
    images = image_table(ids, 0, sources, thumbnails, hashes, origin)
    places = {kind: root / kind / name for kind in ("features", "vectors", "thumbnails")}
    for each in places.values():
        each.mkdir(parents=True)
    images.write(places["features"] / "part.parquet")
    np.save(places["vectors"] / "part.npy", vectors.astype(np.float32))
    thumbnail_files.write(places["thumbnails"] / "part.thumbnails", thumbnails)
    inputs = {kind: DatumInput(kind, place, f"{kind}/{name}", "") for kind, place in places.items()}
    index.start(CPU)(Datum(inputs, root / "index"))


@pytest.fixture(scope="module")
def vectors() -> dict[str, NDArray[np.float32]]:
    """Three segments of different sizes; families of near pictures lie within and across them."""
    random = np.random.default_rng(1)
    found = {name: random.normal(size=(size, 8)) for name, size in zip(NAMES, (40, 25, 7), strict=True)}
    found["3"][10:16] = found["3"][10] + 1e-3 * random.normal(size=(6, 8))
    found["8"][:5] = found["3"][10]
    found["d"][2] = found["8"][20] + 1e-3
    return {name: each.astype(np.float32) for name, each in found.items()}


@pytest.fixture(scope="module")
def written(vectors: Mapping[str, NDArray[np.float32]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("segments")
    for name, each in vectors.items():
        write_segment(root, name, each, scenes=FAMILIES[name])
    return root / "index"


@pytest.fixture
def library(written: Path, tmp_path: Path) -> Path:
    """An index of the three segments, which a test may damage."""
    return Path(shutil.copytree(written, tmp_path / "index"))


def datum(library: Path, left: str, right: str, out: Path, commit: str = "c") -> Datum:
    inputs = {side: DatumInput(side, library / name, name, commit) for side, name in (("left", left), ("right", right))}
    return Datum(inputs, out)


def run(library: Path, out: Path, **environment: str) -> Tree:
    """All datums in Pachyderm's order, by one process; returns the files by path."""
    process = neighbours.start({"THRESHOLD": "0.1", **environment})
    names = sorted(path.name for path in library.iterdir())
    for left in names:
        for right in names:
            process(datum(library, left, right, out))
    return tree(out)


@pytest.fixture(scope="module")
def answers(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of all datums, which tests only read."""
    out = tmp_path_factory.mktemp("answers")
    run(written, out)
    return out


def distances(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float32]:
    difference = one[:, None].astype(np.float64) - other[None]
    found: NDArray[np.float32] = np.sqrt((difference**2).sum(axis=2)).astype(np.float32)
    return found


def found_pairs(out: Path) -> dict[tuple[str, str], float]:
    """The distance of each pair of ids, over all tables."""
    tables = [PairTable.read(path) for path in sorted((out / "pairs").rglob("*.parquet"))]
    listed = [pair for each in tables for pair in _listed(each)]
    assert len(listed) == len(dict(listed))
    return dict(listed)


def _listed(pairs: PairTable) -> Iterator[tuple[tuple[str, str], float]]:
    for one, other, distance in zip(pairs.first, pairs.second, pairs.distances, strict=True):
        yield (one, other), float(distance)


def true_pairs(vectors: Mapping[str, NDArray[np.float32]], threshold: float) -> dict[tuple[str, str], float]:
    everything = np.concatenate([vectors[name] for name in NAMES])
    ids = [f"{name}{row:063x}" for name in NAMES for row in range(len(vectors[name]))]
    found = distances(everything, everything)
    shows = [FAMILIES[name].get(row, -1) for name in NAMES for row in range(len(vectors[name]))]
    pairs = {
        (ids[a], ids[b]): float(found[a, b])
        for a, b in zip(*np.nonzero(found <= threshold), strict=True)
        if a < b and shows[a] == shows[b] != -1
    }
    copies = [f"{name}{row:063x}" for name in NAMES for row in range(0, len(vectors[name]), 5)]
    return pairs | {(id, id): 0.0 for id in copies}


@pytest.mark.parametrize("threshold", [0.0, 3.0])
def test_all_near_pairs_are_listed_once(
    threshold: float, library: Path, vectors: Mapping[str, NDArray[np.float32]], tmp_path: Path
) -> None:
    run(library, tmp_path / "out", THRESHOLD=str(threshold))
    assert found_pairs(tmp_path / "out") == true_pairs(vectors, threshold)


def test_a_table_of_pairs_has_what_is_shown(answers: Path) -> None:
    assert tree(answers).keys() == {
        *(f"pairs/{name}/{name}.parquet" for name in NAMES),  # their exact copies
        *("pairs/3/8.parquet", "pairs/8/d.parquet"),
    }
    pairs = PairTable.read(answers / "pairs" / "8" / "d.parquet")
    assert [*pairs.pictures.ids] == [f"8{20:063x}", f"d{2:063x}"]
    assert [[each.path for each in sources] for sources in pairs.pictures.sources] == [["820.jpg", "copy"], ["d2.jpg"]]
    assert pairs.pictures.thumbnails == [pictured(scene(1), 20), pictured(scene(1), 2)]
    assert (pairs.turns.tolist(), pairs.near.tolist()) == ([0], [True])
    assert (pairs.origin.model, pairs.origin.fit, pairs.metric, pairs.threshold) == (MODEL, "pad", "euclidean", 0.1)


def test_a_library_of_one_picture(tmp_path: Path) -> None:
    write_segment(tmp_path, "a", np.ones((1, 4), np.float32))
    written = run(tmp_path / "index", tmp_path / "out")
    assert sorted(written) == ["pairs/a/a.parquet"]
    assert PairTable.read(tmp_path / "out" / "pairs" / "a" / "a.parquet").metric == "euclidean"


def test_lazy_files_are_read_where_they_are_needed_and_the_left_segment_once(
    answers: Path, library: Path, tmp_path: Path
) -> None:
    process = neighbours.start({"THRESHOLD": "0.1"})
    read: dict[tuple[str, str], set[str]] = {}
    for pair in ((left, right) for left in NAMES for right in NAMES):
        inputs, opened = {}, []
        for side, name in zip(("left", "right"), pair, strict=True):
            pipes = Pipes(library / name, tmp_path / "pipes" / "-".join(pair) / side / name)
            inputs[side] = DatumInput(side, pipes.directory, name, "c")
            opened.append((side, pipes.opened))
        process(Datum(inputs, tmp_path / "lazy"))
        read[pair] = {f"{side} {file}" for side, files in opened for file in files}
    facts = ("hashes.npy", "index.json")
    rest = ("images.parquet", "thumbnails/0.thumbnails", "vectors/0.npy")
    assert read["3", "3"] == {f"left {name}" for name in (*facts, *rest)}
    assert read["3", "8"] == {f"right {name}" for name in (*facts, *rest)}
    assert read["3", "d"] == {f"right {name}" for name in facts}  # no hashes agree
    assert read["8", "3"] == set()
    assert tree(tmp_path / "lazy") == tree(answers)


def test_segments_of_two_models_are_refused(library: Path, tmp_path: Path) -> None:
    write_segment(tmp_path, "e", np.ones((3, 8), np.float32), model="0dd5" * 16)
    process = neighbours.start({})
    with pytest.raises(StageError, match="segment 3 was computed with the model a net at 96 px 5eed.*meaningless"):
        process(datum(library, "3", "e", tmp_path / "out"))


def test_damaged_segments_are_refused(library: Path, tmp_path: Path) -> None:
    process = neighbours.start({})
    (library / "3" / "images.parquet").unlink()
    with pytest.raises(StageError, match=r"segment 3 has no images\.parquet: .*--reprocess index"):
        process(datum(library, "3", "8", tmp_path / "out", ""))
    np.save(library / "d" / "hashes.npy", np.zeros(6, np.uint64))
    with pytest.raises(StageError, match=r"segment d has 6 hashes for 7 pictures.*--reprocess index"):
        process(datum(library, "d", "d", tmp_path / "out", ""))
    (library / "d" / "hashes.npy").write_bytes(b"damaged")
    with pytest.raises(StageError, match=r"the hashes\.npy of segment d cannot be read.*--reprocess index"):
        process(datum(library, "d", "d", tmp_path / "out", ""))
    (library / "8" / "vectors" / "0.npy").unlink()
    with pytest.raises(StageError, match=r"0\.npy is missing next to its table"):
        process(datum(library, "8", "8", tmp_path / "out", ""))


def test_sixteenths_of_several_segments_have_the_pairs_of_one(answers: Path, library: Path, tmp_path: Path) -> None:
    for name in NAMES:
        (library / name).rename(library / f"{name}0")
    write_segment(tmp_path / "more", "3f", np.ones((3, 8), np.float32) * 50)
    (tmp_path / "more" / "index" / "3f").rename(library / "3f")
    process = neighbours.start({"THRESHOLD": "0.1"})
    for left in NAMES:
        for right in NAMES:
            inputs = {}
            for side, digit in (("left", left), ("right", right)):
                group = tmp_path / left / right / side
                shutil.copytree(library, group, ignore=lambda _, names, digit=digit: _others(names, digit))
                last = sorted(group.iterdir())[-1]
                inputs[side] = DatumInput(side, last / "vectors", f"{last.name}/vectors", "c")
            process(Datum(inputs, tmp_path / "out"))
    found, expected = found_pairs(tmp_path / "out"), found_pairs(answers)
    assert found.keys() == expected.keys() | {(f"3f{0:063x}",) * 2}


def _others(names: list[str], digit: str) -> list[str]:
    """The segments that do not begin with a digit, of the names in a directory."""
    return [name for name in names if len(name) == 2 and not name.startswith(digit)]


def test_too_many_pairs_are_refused(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "MOST_PAIRS", 10)
    with pytest.raises(
        StageError, match="segments 3 and 3 have more than 10 pairs of pictures within THRESHOLD=0.1 and"
    ):
        run(library, tmp_path / "out")


@pytest.mark.parametrize(
    ("variable", "reason"),
    [
        ("THRESHOLD=near", "THRESHOLD='near': must be a number from 0, such as 0.35"),
        ("THRESHOLD=-1", "THRESHOLD='-1'"),
        ("THRESHOLD=nan", "THRESHOLD='nan'"),
        ("HASH_BITS=25", "HASH_BITS='25': must be a whole number from 0 to 24"),
        ("HASH_BITS=0.5", "HASH_BITS='0.5'"),
        ("METRIC=city", "METRIC='city'"),
    ],
)
def test_bad_parameters_are_named(variable: str, reason: str) -> None:
    name, value = variable.split("=")
    with pytest.raises(StageError, match=reason):
        neighbours.start({name: value})


@pytest.mark.parametrize(("threshold", "metric"), [("0.1", "euclidean"), ("1", "cosine")])
def test_copies_are_found_however_they_lie(threshold: str, metric: str, tmp_path: Path) -> None:
    vectors = np.ones((TURNS, 4), np.float32) + 1e-3 * np.eye(TURNS, 4, dtype=np.float32)
    for name in ("3", "8"):
        write_segment(tmp_path, name, vectors, scenes=dict.fromkeys(range(TURNS), 1), turns=TURNS)
    process = neighbours.start({"THRESHOLD": threshold, "METRIC": metric, "HASH_BITS": "2"})
    process(datum(tmp_path / "index", "3", "8", tmp_path / "out"))
    pairs = PairTable.read(tmp_path / "out" / "pairs" / "3" / "8.parquet")
    turns = {
        (one, other): turn for one, other, turn in zip(pairs.first, pairs.second, pairs.turns.tolist(), strict=True)
    }
    assert len(turns) == TURNS**2
    lying = [lain(scene(1), each) for each in range(TURNS)]
    for (one, other), turn in turns.items():
        upright, turned = (lying[int(id[-1], 16)] for id in (one, other))
        assert lain(turned, turn).tobytes() == upright.tobytes()


def test_hashes_that_differ_too_much_are_no_pair(tmp_path: Path) -> None:
    write_segment(tmp_path, "3", np.ones((4, 4), np.float32), scenes=dict.fromkeys(range(4), 1))
    hash = perceptual_hash(np.asarray(scene(1)))
    changed = [hash, hash ^ 0b111 << 20, NO_VERDICT, hash]
    np.save(tmp_path / "index" / "3" / "hashes.npy", np.array(changed, np.uint64))
    for bits, expected in (("2", {(0, 3)}), ("3", {(0, 1), (1, 3), (0, 3)})):
        run(tmp_path / "index", tmp_path / bits, HASH_BITS=bits)
        pairs = PairTable.read(tmp_path / bits / "pairs" / "3" / "3.parquet")
        found = [(int(a, 16) % 16, int(b, 16) % 16) for a, b in zip(pairs.first, pairs.second, strict=True)]
        assert {each for each in found if each[0] != each[1]} == expected
        itself = {one: near for (one, other), near in zip(found, pairs.near.tolist(), strict=True) if one == other}
        assert itself == {0: True}


def test_no_picture_is_compared_with_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_pairs, "MOST_EACH", 5)
    count = 9
    vectors = np.ones((count, 4), np.float32) + 1e-3 * np.arange(count, dtype=np.float32)[:, None]
    write_segment(tmp_path, "3", vectors, scenes=dict.fromkeys(range(count), 1))
    run(tmp_path / "index", tmp_path / "out", THRESHOLD="1", HASH_BITS="4")
    pairs = PairTable.read(tmp_path / "out" / "pairs" / "3" / "3.parquet").pictures
    with_others = pairs.first[pairs.first != pairs.second]
    assert np.bincount(with_others).max() == 5
    assert set(with_others.tolist()) == set(range(count - 1))


def test_a_damaged_thumbnail_is_named(library: Path, tmp_path: Path) -> None:
    file = library / "3" / "thumbnails" / "0.thumbnails"
    content = file.read_bytes()
    start = content.index(b"\xff\xda", content.index(pictured(scene(0), 11)))
    file.write_bytes(content[:start] + bytes(200) + content[start + 200 :])
    with pytest.raises(StageError, match="a thumbnail of segment 3 cannot be read.*--reprocess index"):
        run(library, tmp_path / "out")
