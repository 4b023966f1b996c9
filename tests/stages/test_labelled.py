"""The stage labelled as Pachyderm runs it: buckets of partition and labels in, tables and vectors out."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages import annotations, labelled
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files import thumbnail_files
from stages.files.tables.label_table import LabelTable
from stages.record import attribute_schema
from stages.record.origin import Origin
from stages.record.sources import Source
from tests.stages.image_tables import MODEL, image_table

DIMENSION = 6

PICTURES = {
    "a0": ["cats/1.jpg"],
    "a1": ["dogs/1.jpg", "copies/dog.jpg"],
    "a2": ["cats/2.jpg", "dogs/2.jpg"],  # its sources disagree
    "a3": ["rest/1.jpg"],  # without a label
    "a4": ["rest/2.jpg", "cats/3.jpg"],  # the second source has one
    "a5": ["conflict.jpg"],
    "a6": ["cats/\udcff.jpg"],
}
LABELS = (
    b"source,label\ncats/1.jpg,cat\ndogs/1.jpg,dog\ncopies/dog.jpg,dog\ncats/2.jpg,cat\ndogs/2.jpg,dog\n"
    b"cats/3.jpg,cat\nconflict.jpg,cat\nconflict.jpg,dog\ncats/\xff.jpg,cat\nabsent.jpg,cat\n"
)


def id_of(short: str) -> str:
    return short.ljust(64, "0")


def vector(short: str) -> list[float]:
    return list(np.random.default_rng(int(short, 16)).normal(size=DIMENSION))


def write_bucket(segment: Path, bucket: str, pictures: Mapping[str, Sequence[str]], model: str = MODEL) -> None:
    """A bucket in the form of the partition stage: pictures by the beginning of their id, with their sources."""
    segment.mkdir(parents=True, exist_ok=True)
    names = sorted(pictures)
    thumbnails = [b"jpeg of " + each.encode() for each in names]
    thumbnail_files.write(segment.parents[1] / "thumbnails" / segment.name / f"{bucket}.thumbnails", thumbnails)
    sources = [[Source(path, hashlib.sha256(each.encode()).hexdigest()) for path in pictures[each]] for each in names]
    origin = Origin(model, "pad", 32, DIMENSION, "small at 32 px", ("cpu",))
    images = image_table([id_of(each) for each in names], 0, sources, thumbnails, origin=origin)
    images.write(segment / f"{bucket}.parquet")
    vectors = segment.parents[1] / "vectors" / segment.name
    vectors.mkdir(parents=True, exist_ok=True)
    np.save(vectors / f"{bucket}.npy", np.array([vector(each) for each in names], np.float32))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Segment a in two buckets, which share a picture, and labels."""
    segment = tmp_path / "library" / "a"
    write_bucket(segment, "one", {each: PICTURES[each] for each in ("a0", "a1", "a2", "a6")})
    write_bucket(segment, "two", {each: PICTURES[each] for each in ("a0", "a3", "a4", "a5")})
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "a.csv").write_bytes(LABELS)
    return tmp_path


def labels_dealt(root: Path, out: Path, segment: str) -> Path:
    """The labels of a segment, as annotations deals them."""
    attributes = root / "attributes"
    attributes.mkdir(exist_ok=True)
    (attributes / attribute_schema.SCHEMA).write_bytes(attribute_schema.format_schema({}))
    features = DatumInput("features", root / "library" / segment, f"library/{segment}", "")
    whole = (DatumInput(each, root / each, "", "") for each in ("labels", "attributes"))
    annotations.start({})(Datum({each.name: each for each in (features, *whole)}, out / "dealt"))
    return out / "dealt" / "labels" / f"{segment}.parquet"


def datum(root: Path, out: Path, segment: str = "a", commit: str = "") -> Datum:
    out.mkdir(exist_ok=True)
    inputs = {
        "labels": DatumInput("labels", labels_dealt(root, out, segment), f"labels/{segment}.parquet", commit),
        "features": DatumInput("features", root / "library" / segment, f"library/{segment}", commit),
        **{
            kind: DatumInput(kind, root / kind / segment, f"{kind}/{segment}", commit)
            for kind in ("vectors", "thumbnails")
        },
    }
    return Datum(inputs, out)


def run(root: Path, out: Path, environment: Mapping[str, str] | None = None) -> tuple[LabelTable, Any, Any]:
    labelled.start(environment or {})(datum(root, out))
    left_out = json.loads((out / "left_out" / "a.json").read_bytes())
    return LabelTable.read(out / "a.parquet"), np.load(out / "a.npy"), left_out


def test_pictures_with_a_usable_label_come_with_vectors(root: Path, tmp_path: Path) -> None:
    table, vectors, _ = run(root, tmp_path / "out", {"HELD_OUT": "0.3"})
    shorts = ["a0", "a1", "a4", "a6"]
    assert table == LabelTable(
        ids=[id_of(each) for each in shorts],
        sources=[PICTURES[each][0] for each in shorts],
        labels=["cat", "dog", "cat", "cat"],
        thumbnails=[b"jpeg of " + each.encode() for each in shorts],
        origin=Origin(MODEL, "pad", 32, DIMENSION, "small at 32 px", ("cpu",)),
        held_out=0.3,
    )
    assert vectors.dtype == np.dtype("<f4")
    np.testing.assert_array_equal(vectors, np.array([vector(each) for each in shorts], np.float32))


def test_labels_for_evaluation_train_nothing(root: Path, tmp_path: Path) -> None:
    table, _, left_out = run(root, tmp_path / "one")
    (root / "labels" / "evaluate").mkdir()
    for name in ("evaluate/a.csv", "evaluate/folders.csv", "folders.csv"):
        (root / "labels" / name).write_bytes(b"source,label\nrest/1.jpg,trip\ncats/1.jpg,trip\n")
    again, _, left_out_then = run(root, tmp_path / "two")
    assert (again.sources, again.labels, left_out_then) == (table.sources, table.labels, left_out)


def test_what_is_left_out_is_reported(root: Path, tmp_path: Path) -> None:
    table, _, left_out = run(root, tmp_path / "out")
    assert left_out["mixed"] == {"count": 2, "examples": ["cats/2.jpg", "conflict.jpg"]}
    assert left_out["known"] == 8
    seen = {*left_out["others"], *table.sources}
    assert left_out["others"] == ["cats/2.jpg", "cats/3.jpg", "conflict.jpg", "copies/dog.jpg", "dogs/2.jpg"]
    assert "absent.jpg" not in seen
    assert seen >= {"cats/1.jpg", "dogs/1.jpg", "copies/dog.jpg", "cats/3.jpg"}


def test_a_segment_without_labels_has_an_empty_table(root: Path, tmp_path: Path) -> None:
    (root / "labels" / "a.csv").write_bytes(b"source,label\n")
    table, vectors, left_out = run(root, tmp_path / "out")
    assert (len(table), table.origin.model, table.origin.dimension) == (0, MODEL, DIMENSION)
    assert vectors.shape == (0, DIMENSION)
    assert left_out == {"mixed": {"count": 0, "examples": []}, "known": 0, "others": []}


def test_equal_inputs_give_equal_bytes_however_they_are_divided(root: Path, tmp_path: Path) -> None:
    run(root, tmp_path / "one")
    (tmp_path / "other" / "labels").mkdir(parents=True)
    lines = LABELS.splitlines(keepends=True)
    (tmp_path / "other" / "labels" / "b.csv").write_bytes(b"".join([lines[0], *lines[:4:-1]]))
    (tmp_path / "other" / "labels" / "c.csv").write_bytes(b"".join([lines[0], *lines[1:5]]))
    for short, sources in PICTURES.items():
        write_bucket(tmp_path / "other" / "library" / "a", short, {short: sources})
    run(tmp_path / "other", tmp_path / "two")
    files = ["a.npy", "a.parquet", "left_out/a.json"]
    assert [(tmp_path / "one" / each).read_bytes() for each in files] == [
        (tmp_path / "two" / each).read_bytes() for each in files
    ]


def test_buckets_of_two_models_are_refused(root: Path, tmp_path: Path) -> None:
    write_bucket(root / "library" / "a", "three", {"a9": ["cats/9.jpg"]}, model="0" * 64)
    with pytest.raises(StageError, match="one part of the pictures was computed with the model"):
        run(root, tmp_path / "out")


def test_a_bucket_without_its_vectors_is_refused(root: Path, tmp_path: Path) -> None:
    one = root / "vectors" / "a" / "one.npy"
    np.save(one, np.zeros((1, DIMENSION), np.float32))
    with pytest.raises(StageError, match=r"^one\.npy does not have one vector for each .* --reprocess partition$"):
        run(root, tmp_path / "out")
    one.unlink()
    with pytest.raises(StageError, match=r"^one\.npy is missing"):
        run(root, tmp_path / "out")


def test_vectors_of_buckets_without_labels_are_not_read(root: Path, tmp_path: Path) -> None:
    """They are pipes under Pachyderm."""
    write_bucket(root / "library" / "a", "rest", {"a7": ["rest/7.jpg"]})
    (root / "vectors" / "a" / "rest.npy").unlink()
    table, vectors, _ = run(root, tmp_path / "out")
    assert len(table) == len(vectors) == 4


def test_another_directory_is_refused(root: Path, tmp_path: Path) -> None:
    (root / "library" / "b").mkdir()
    with pytest.raises(StageError, match="b does not hold pictures: .* that the partition stage wrote"):
        labelled.start({})(datum(root, tmp_path / "out", "b"))


def test_a_missing_input_is_named(root: Path, tmp_path: Path) -> None:
    some = datum(root, tmp_path / "out")
    for name in some.inputs:
        others = {other: each for other, each in some.inputs.items() if other != name}
        with pytest.raises(StageError, match=f"the input {name} is missing: .* of annotations; "):
            labelled.start({})(Datum(others, some.out))


def test_a_file_of_thumbnails_that_is_missing_is_named(root: Path, tmp_path: Path) -> None:
    (root / "thumbnails" / "a" / "two.thumbnails").unlink()
    with pytest.raises(StageError, match=r"^two\.thumbnails, .* is missing: .* --reprocess partition$"):
        run(root, tmp_path / "out")


def test_a_bad_share_is_refused() -> None:
    with pytest.raises(StageError, match="HELD_OUT"):
        labelled.start({"HELD_OUT": "1"})
