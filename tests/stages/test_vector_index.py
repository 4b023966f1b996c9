"""The stage vector-index as Pachyderm runs it: a segment of index and batches of vectors in, a segment out."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from stages import vector_index
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files import segment_files
from stages.files.tables.vector_table import VectorTable
from tests.pipes import Pipes
from tests.stages import picture_indexes
from tests.stages.picture_indexes import id_of

NAMES = [name for name in map(str, range(400)) if id_of(name)[0] == "a"]
IDS = sorted(map(id_of, NAMES))
D = 3


def vector(id: str) -> list[float]:
    return [float(each) for each in np.random.default_rng(int(id[:8], 16)).normal(size=D).astype(np.float32)]


def put(root: Path, batch: str, vectors: Mapping[str, list[float]], model: str = "clip") -> None:
    directory = root / "vectors" / "a"
    directory.mkdir(parents=True, exist_ok=True)
    ids = sorted(vectors)
    table = VectorTable(ids=ids, model=model, backbone=f"somebody's {model}", dimension=D)
    table.write(directory / f"{batch}.parquet")
    np.save(directory / f"{batch}.npy", np.array([vectors[id] for id in ids], np.float32).reshape(len(ids), D))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    own = {id: np.ones(7, np.float32) for id in IDS}
    picture_indexes.write(tmp_path / "index", own, {id_of(name): [f"{name}.png"] for name in NAMES})
    return tmp_path


def datum(root: Path, out: Path) -> Datum:
    given = {"index": DatumInput("index", root / "index" / "a", "a", "")}
    given["vectors"] = DatumInput("vectors", root / "vectors" / "a", "library/a", "")
    return Datum(given, out)


def run(root: Path, out: Path, **environment: str) -> dict[str, bytes]:
    """The files that a datum writes."""
    vector_index.start(environment)(datum(root, out))
    return {str(file.relative_to(out)): file.read_bytes() for file in sorted(out.rglob("*")) if file.is_file()}


def test_pictures_with_a_vector_are_indexed_by_it(root: Path, tmp_path: Path) -> None:
    some = IDS[::2]
    put(root, "one", {id: vector(id) for id in some[:5]})
    put(root, "two", {id: vector(id) for id in some[5:]} | {id_of("gone"): vector(id_of("gone"))})
    run(root, tmp_path / "out", METRIC="cosine")
    found = DatumInput("index", tmp_path / "out" / "a", "a", "")
    facts, table = segment_files.read_facts(found), segment_files.read_table(found)
    assert [*table.ids] == some and [each[0].path for each in table.sources]
    assert (facts.count, facts.metric, facts.origin.model) == (len(some), "cosine", "clip")
    assert (facts.origin.backbone, facts.origin.dimension, facts.origin.devices) == ("somebody's clip", D, ())
    points = segment_files.read_points(found, table.vectors, D)
    assert points.tolist() == [vector(id) for id in some]
    index = DatumInput("index", root / "index" / "a", "a", "")
    hashes = dict(zip(IDS, segment_files.read_hashes(index).tolist(), strict=True))
    assert segment_files.read_hashes(found).tolist() == [hashes[id] for id in some]
    shown, before = (segment_files.thumbnails(each, segment_files.read_table(each)) for each in (found, index))
    assert [shown[row] for row in range(len(some))] == [before[row] for row in range(0, len(IDS), 2)]


def test_equal_vectors_give_equal_bytes_however_they_came(root: Path, tmp_path: Path) -> None:
    vectors = {id: vector(id) for id in IDS[1:9]}
    put(root, "all", vectors)
    expected = run(root, tmp_path / "first")
    for file in (root / "vectors" / "a").iterdir():
        file.unlink()
    for number, (id, each) in enumerate(reversed(vectors.items())):
        put(root, f"{number}", {id: each})
    assert run(root, tmp_path / "second") == expected
    pipes = Pipes(root, tmp_path / "lazy")
    given = datum(pipes.directory, tmp_path / "third")
    vector_index.start({})(Datum(given.inputs, given.out, by_reference=True))
    read = {each for each in pipes.opened if each.startswith("index/")}
    assert read == {f"index/a/{each}" for each in ("hashes.npy", "images.parquet", "index.json")}
    assert (tmp_path / "third" / "a" / "images.parquet").read_bytes() == expected["a/images.parquet"]
    # Thumbnails are passed on unread.
    links = [*(tmp_path / "third" / "a" / "thumbnails").iterdir()]
    assert links and all(link.is_symlink() for link in links)


def test_a_segment_without_any_such_picture_is_left_out(root: Path, tmp_path: Path) -> None:
    put(root, "one", {id_of("gone"): vector(id_of("gone"))})
    assert run(root, tmp_path / "out") == {}


def test_what_no_command_has_put_is_refused(root: Path, tmp_path: Path) -> None:
    put(root, "one", {id: vector(id) for id in IDS[:2]})
    put(root, "two", {id: vector(id) for id in IDS[1:3]})
    with pytest.raises(StageError, match=f"the picture {IDS[1]} has two vectors"):
        run(root, tmp_path / "out")
    put(root, "two", {id: vector(id) for id in IDS[2:3]}, "dino")
    with pytest.raises(StageError, match=r"vectors of somebody's clip .* and somebody's dino .*: put vectors with"):
        run(root, tmp_path / "out")
    (root / "vectors" / "a" / "two.parquet").write_bytes(b"no table")
    with pytest.raises(StageError, match=r"two\.parquet"):
        run(root, tmp_path / "out")
    (root / "vectors" / "a" / "two.parquet").unlink()
    np.save(root / "vectors" / "a" / "one.npy", np.ones((2, D + 1), np.float32))
    with pytest.raises(StageError, match=r"one\.npy holds float32 of shape \(2, 4\)"):
        run(root, tmp_path / "out")
    (root / "vectors" / "a" / "one.npy").unlink()
    with pytest.raises(StageError, match=r"one\.npy is missing"):
        run(root, tmp_path / "out")
    with pytest.raises(StageError, match="the input vectors is missing"):
        vector_index.start({})(Datum({"index": datum(root, root).inputs["index"]}, tmp_path / "out"))
    assert json.loads((root / "index" / "a" / "index.json").read_text())["count"] == len(IDS)
