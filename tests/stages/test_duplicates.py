"""The duplicates stage on plain directories: its files, its parameters, and equal bytes."""

import json
from pathlib import Path
from typing import Any

import pytest

from stages import duplicates, namelists
from stages.contract import Datum, Input, StageError
from tests.stages import pairings
from tests.stages.pairings import source, write

PICTURES = {
    "cat": [source("cat.jpg", 400, 300, 5000, "2019-08-04T16:30:12"), source("old/cat.jpg", 400, 300, 5000)],
    "small": [source("small\ncat.jpg", 40, 30)],
    "dark": [source("dark.jpg", 400, 300, 4000)],
    "dog": [source("dog.jpg"), source("<b>dog</b>.jpg", 41)],
}


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    write(tmp_path / "pairs" / "0" / "0.parquet", PICTURES, [("cat", "cat", 0), ("cat", "small", 0.25)])
    write(tmp_path / "pairs" / "0" / "1.parquet", PICTURES, [("dark", "small", 0.5)])
    write(tmp_path / "pairs" / "1" / "1.parquet", PICTURES, [("dog", "dog", 0)])
    return tmp_path / "pairs"


def run(pairs: Path, out: Path, **environment: str) -> list[dict[str, Any]]:
    duplicates.start(environment)(Datum({"pairs": Input("pairs", pairs, "pairs", "c")}, out))
    return [json.loads(line) for line in (out / "groups.jsonl").read_text().splitlines()]


def kept(groups: list[dict[str, Any]]) -> dict[str, set[str]]:
    """The sources of each group by the kept one."""
    return {
        group["keep"]: {source["path"] for picture in group["pictures"] for source in picture["sources"]}
        for group in groups
    }


def listed(out: Path) -> list[str]:
    return list(namelists.parse((out / "remove.txt").read_text()))


def test_groups_span_tables_and_the_list_has_all_but_the_kept(pairs: Path, tmp_path: Path) -> None:
    groups = run(pairs, tmp_path / "out")
    assert kept(groups) == {
        "cat.jpg": {"cat.jpg", "old/cat.jpg", "small\ncat.jpg", "dark.jpg"},
        "<b>dog</b>.jpg": {"dog.jpg", "<b>dog</b>.jpg"},
    }
    assert [group["kind"] for group in groups] == ["near", "exact"]
    assert listed(tmp_path / "out") == ["dark.jpg", "dog.jpg", "old/cat.jpg", "small\ncat.jpg"]
    near = groups[0]
    assert near["frees"] == 5000 + 1000 + 4000
    assert (near["threshold"], near["metric"], near["backbone"]) == (0.5, "euclidean", "a backbone")
    assert [picture["distance"] for picture in near["pictures"]] == [0, 0.25, None]
    assert near["pictures"][0]["sources"][0] == {
        "path": "cat.jpg",
        "sha256": pairings.id_of("cat.jpg"),
        "width": 400,
        "height": 300,
        "bytes": 5000,
        "taken": "2019-08-04T16:30:12",
        "keep": True,
    }


def test_a_smaller_distance_and_two_folders_are_chosen(pairs: Path, tmp_path: Path) -> None:
    nearer = kept(run(pairs, tmp_path / "a", DISTANCE="0.25"))
    assert nearer["cat.jpg"] == {"cat.jpg", "old/cat.jpg", "small\ncat.jpg"}
    assert all(group["kind"] == "exact" for group in run(pairs, tmp_path / "b", DISTANCE="0"))
    assert list(kept(run(pairs, tmp_path / "c", ACROSS='["old", "dark.jpg"]'))) == []
    assert kept(run(pairs, tmp_path / "d", ACROSS='["dark.jpg", "small\\ncat.jpg"]')) == {
        "dark.jpg": {"dark.jpg", "small\ncat.jpg"}
    }
    assert "in both dark.jpg and small␊cat.jpg" in (tmp_path / "d" / "index.html").read_text()


def test_equal_pairs_give_equal_bytes(pairs: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        run(pairs, tmp_path / name)
    files = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "b").iterdir()}
    assert sorted(files) == ["groups.jsonl", "index.html", "remove.txt"]


def test_no_pairs_are_no_groups(tmp_path: Path) -> None:
    (tmp_path / "pairs").mkdir()
    assert run(tmp_path / "pairs", tmp_path / "out") == []
    assert listed(tmp_path / "out") == []
    assert "No copies in the library" in (tmp_path / "out" / "index.html").read_text()


def test_wrong_parameters_and_tables_are_refused(pairs: Path, tmp_path: Path) -> None:
    for environment, reason in (
        ({"DISTANCE": "0.6"}, r"DISTANCE=0.6 is above THRESHOLD=0.5"),
        ({"DISTANCE": "far"}, "DISTANCE='far': must be a number"),
        ({"ACROSS": "train"}, "must be two folders"),
        ({"ACROSS": '["a"]'}, "must be two folders"),
    ):
        with pytest.raises(StageError, match=reason):
            run(pairs, tmp_path / "out", **environment)
    for other in ({"model": "n" * 64}, {"threshold": 0.25}):
        write(pairs / "2" / "2.parquet", PICTURES, [("dog", "dog", 0)], **other)
        with pytest.raises(StageError, match="2/2.parquet has pairs of another model"):
            run(pairs, tmp_path / "out")
    with pytest.raises(StageError, match="the input pairs is missing"):
        duplicates.start({})(Datum({}, tmp_path / "out"))
