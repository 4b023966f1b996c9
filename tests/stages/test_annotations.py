"""The stage annotations as Pachyderm runs it: buckets of partition, labels and tables in, annotations of a segment
out."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stages import annotations
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files.tables.annotation_table import PATH, TYPES, read_annotations, write_annotations
from stages.files.tables.parquet import stored_text, true_text
from stages.record import attribute_schema
from tests.pipes import piped
from tests.stages.test_labelled import LABELS, PICTURES, write_bucket

ODD = "cats/\udcff.jpg"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Segments a and b, labels, and no table."""
    write_bucket(tmp_path / "library" / "a", "one", {each: PICTURES[each] for each in ("a0", "a1", "a2", "a6")})
    write_bucket(tmp_path / "library" / "a", "two", {each: PICTURES[each] for each in ("a0", "a3", "a4", "a5")})
    write_bucket(tmp_path / "library" / "b", "one", {"b0": ["dogs/1.jpg", "dogs/7.jpg"]})
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "a.csv").write_bytes(LABELS)
    (tmp_path / "attributes" / attribute_schema.DIRECTORY).mkdir(parents=True)
    put_schema(tmp_path, {})
    return tmp_path


def put_schema(root: Path, types: Mapping[str, str]) -> None:
    (root / "attributes" / attribute_schema.SCHEMA).write_bytes(attribute_schema.format_schema(types))


def put_table(root: Path, name: str, paths: Sequence[str], **columns: tuple[str, Sequence[Any]]) -> None:
    given = {each: pa.array(values, TYPES[type]) for each, (type, values) in columns.items()}
    table = pa.table({PATH: pa.array([*map(stored_text, paths)], pa.string()), **given})
    write_annotations(table, root / "attributes" / attribute_schema.DIRECTORY / f"{name}.parquet")


def datum(root: Path, out: Path, segment: str = "a", commit: str = "") -> Datum:
    inputs = [
        DatumInput("features", root / "library" / segment, f"library/{segment}", commit),
        *(DatumInput(each, root / each, "", commit) for each in ("labels", "attributes")),
    ]
    return Datum({each.name: each for each in inputs}, out)


def run(root: Path, out: Path, segment: str = "a") -> dict[str, dict[str, Any]]:
    """The annotations of a segment by file."""
    annotations.start({})(datum(root, out, segment))
    return rows(out / "annotations" / f"{segment}.parquet")


def rows(file: Path) -> dict[str, dict[str, Any]]:
    found = read_annotations(file).to_pylist()
    return {
        true_text(row.pop(PATH)): {name: value for name, value in row.items() if value is not None} for row in found
    }


def test_labels_are_an_attribute_and_those_to_train_on_stand_apart(root: Path, tmp_path: Path) -> None:
    (root / "labels" / "evaluate").mkdir()
    (root / "labels" / "evaluate" / "more.csv").write_bytes(b"source,label\nrest/1.jpg,trip\ncats/1.jpg,trip\n")
    assert {name: row["label"] for name, row in run(root, tmp_path / "out").items()} == {
        "cats/1.jpg": "cat",
        "cats/2.jpg": "cat",
        "cats/3.jpg": "cat",
        ODD: "cat",
        "copies/dog.jpg": "dog",
        "dogs/1.jpg": "dog",
        "dogs/2.jpg": "dog",
        "rest/1.jpg": "trip",
    }
    training = rows(tmp_path / "out" / "labels" / "a.parquet")
    assert training.keys() == {name for of in PICTURES.values() for name in of} - {"rest/1.jpg", "rest/2.jpg"}
    assert [name for name, row in training.items() if not row] == ["conflict.jpg"]


def test_tables_are_joined_in_the_types_of_the_schema(root: Path, tmp_path: Path) -> None:
    (root / "labels" / "a.csv").write_bytes(b"source,label\n")
    put_schema(root, {"year": "number", "owner": "text", "unused": "date"})
    put_table(root, "one", ["cats/1.jpg", "absent.jpg", ODD], year=("integer", [2001, 2, 3]))
    put_table(root, "two", ["dogs/1.jpg", ODD], year=("number", [1.5, None]), owner=("text", [None, "me"]))
    assert run(root, tmp_path / "out") == {
        "cats/1.jpg": {"year": 2001.0},
        "dogs/1.jpg": {"year": 1.5},
        ODD: {"year": 3.0, "owner": "me"},
    }
    assert read_annotations(tmp_path / "out" / "annotations" / "a.parquet").schema.names == [PATH, "owner", "year"]


def test_a_change_changes_the_segments_that_it_names_alone(root: Path, tmp_path: Path) -> None:
    def written(out: str, segment: str) -> list[bytes]:
        run(root, tmp_path / out, segment)
        files = sorted((tmp_path / out).rglob(f"{segment}.parquet"))
        assert [each.parent.name for each in files] == ["annotations", "labels"]
        return [each.read_bytes() for each in files]

    before = {segment: written("before", segment) for segment in "ab"}
    put_schema(root, {"owner": "text"})
    put_table(root, "mine", ["dogs/7.jpg"], owner=("text", ["me"]))
    after = {segment: written("after", segment) for segment in "ab"}
    assert after["a"] == before["a"]
    assert (after["b"][0] != before["b"][0], after["b"][1]) == (True, before["b"][1])
    with (root / "labels" / "a.csv").open("ab") as labels:
        labels.write(b"rest/1.jpg,trip\n")
    later = {segment: written("later", segment) for segment in "ab"}
    assert later["b"] == after["b"]
    assert all(one != other for one, other in zip(later["a"], after["a"], strict=True))


def test_labels_and_tables_are_read_once_for_all_segments_of_a_commit(root: Path, tmp_path: Path) -> None:
    """They are pipes, which can be read once."""
    put_schema(root, {"owner": "text"})
    put_table(root, "mine", ["dogs/7.jpg", "cats/1.jpg"], owner=("text", ["me", "you"]))
    opened: list[str] = []
    for path in [each for name in ("labels", "attributes") for each in (root / name).rglob("*") if each.is_file()]:
        content = path.read_bytes()
        path.unlink()
        piped(path, content, partial(opened.append, path.name))
    process = annotations.start({})
    for segment in "ab":
        process(datum(root, tmp_path / "out", segment, "c0ffee"))
    assert sorted(opened) == ["a.csv", "mine.parquet", "schema.json"]
    assert rows(tmp_path / "out" / "annotations" / "b.parquet")["dogs/7.jpg"] == {"owner": "me"}


def test_what_no_command_has_put_is_refused(root: Path, tmp_path: Path) -> None:
    put_table(root, "mine", ["dogs/7.jpg"], owner=("text", ["me"]))
    with pytest.raises(StageError, match=r"^mine\.parquet has columns that schema\.json lacks \(owner\): put tables "):
        run(root, tmp_path / "out")
    (root / "attributes" / attribute_schema.SCHEMA).write_bytes(b'{"columns": {"x": {"type": "words"}}, "format": 1}')
    with pytest.raises(StageError, match=r"^schema\.json of attributes is not one"):
        run(root, tmp_path / "out")
    (root / "attributes" / attribute_schema.SCHEMA).unlink()
    with pytest.raises(StageError, match=r"^the repo attributes has no schema\.json"):
        run(root, tmp_path / "out")


def test_a_missing_input_is_named(root: Path, tmp_path: Path) -> None:
    some = datum(root, tmp_path / "out")
    for name in some.inputs:
        others = {other: each for other, each in some.inputs.items() if other != name}
        with pytest.raises(StageError, match=f"the input {name} is missing: "):
            annotations.start({})(Datum(others, some.out))
