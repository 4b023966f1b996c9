"""The duplicates stage on plain directories: its files, its parameters, and equal bytes."""

import json
from pathlib import Path
from typing import Any

import pytest

from stages import duplicates
from stages.datum.contract import Datum, DatumInput, StageError
from stages.record import name_lists
from tests.stages import pairings
from tests.stages.pairings import source, write

PICTURES = {
    "cat": [
        source("cat.jpg", 400, 300, 5000, "2019-08-04T16:30:12", pixels="cat"),
        source("old/cat.jpg", 400, 300, 5000, pixels="cat"),
    ],
    "small": [source("small\ncat.jpg", 40, 30)],
    "dark": [source("dark.jpg", 400, 300, 4000)],
    "dog": [source("dog.jpg", pixels="dog"), source("<b>dog</b>.jpg", 41, pixels="dog"), source("other dog.jpg")],
}


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    write(tmp_path / "pairs" / "0" / "0.parquet", PICTURES, [("cat", "cat", 0), ("cat", "small", 0.25)])
    write(tmp_path / "pairs" / "0" / "1.parquet", PICTURES, [("dark", "small", 0.5)])
    write(tmp_path / "pairs" / "1" / "1.parquet", PICTURES, [("dog", "dog", 0)])
    return tmp_path / "pairs"


def run(pairs: Path, out: Path, *references: str, **environment: str) -> None:
    """references: the names of pictures that stay at their URLs."""
    inputs = {"pairs": DatumInput("pairs", pairs, "pairs", "c")}
    if references:
        names = pairs.parent / f"references of {out.name}"
        names.write_text("".join(f"{each}\n" for each in name_lists.lines(references)))
        inputs["references"] = DatumInput("references", names, "", "")
    duplicates.start(environment)(Datum(inputs, out))


def groups(out: Path, file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / file).read_text().splitlines()]


def kept(out: Path, file: str) -> dict[str, set[str]]:
    """The sources of each group by the kept one."""
    return {
        group["keep"]: {source["path"] for picture in group["pictures"] for source in picture["sources"]}
        for group in groups(out, file)
    }


def listed(out: Path) -> list[str]:
    return list(name_lists.parse((out / "remove.txt").read_text()))


def test_exact_groups_are_listed_and_near_ones_are_not(pairs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(pairs, out)
    assert kept(out, "groups.jsonl") == {
        "cat.jpg": {"cat.jpg", "old/cat.jpg"},
        "<b>dog</b>.jpg": {"dog.jpg", "<b>dog</b>.jpg"},
    }
    assert listed(out) == ["dog.jpg", "old/cat.jpg"]
    assert kept(out, "near.jsonl") == {
        "cat.jpg": {"cat.jpg", "old/cat.jpg", "small\ncat.jpg"},  # and dark.jpg is near to the small one alone
        "<b>dog</b>.jpg": {"dog.jpg", "<b>dog</b>.jpg", "other dog.jpg"},
    }
    near = next(each for each in groups(out, "near.jsonl") if each["keep"] == "cat.jpg")
    assert (near["kind"], near["frees"]) == ("near", 5000 + 1000)
    assert (near["threshold"], near["metric"], near["backbone"]) == (0.5, "euclidean", "a backbone")
    assert [picture["distance"] for picture in near["pictures"]] == [0, 0.25]
    assert near["pictures"][0]["sources"][0] == {
        "path": "cat.jpg",
        "sha256": pairings.id_of("cat.jpg"),
        "width": 400,
        "height": 300,
        "bytes": 5000,
        "taken": "2019-08-04T16:30:12",
        "coding": "",
        "encoder": "",
        "pixels": "cat",
        "camera": "",
        "lens": "",
        "latitude": None,
        "longitude": None,
        "format": "",
        "keep": True,
    }


def test_a_turn_is_said_in_words(tmp_path: Path) -> None:
    write(tmp_path / "pairs" / "0.parquet", PICTURES, [("dark", "small", 0.25)], turn=3)
    run(tmp_path / "pairs", tmp_path / "out")
    (group,) = groups(tmp_path / "out", "near.jsonl")
    assert [each["turned"] for each in group["pictures"]] == ["", "turned by 180°"]


def test_two_folders_are_compared(pairs: Path, tmp_path: Path) -> None:
    run(pairs, tmp_path / "a", ACROSS='["cat.jpg", "old"]')
    assert kept(tmp_path / "a", "groups.jsonl") == {"cat.jpg": {"cat.jpg", "old/cat.jpg"}}
    assert listed(tmp_path / "a") == ["old/cat.jpg"]
    run(pairs, tmp_path / "b", ACROSS='["dark.jpg", "small\\ncat.jpg"]')
    assert kept(tmp_path / "b", "near.jsonl") == {"dark.jpg": {"dark.jpg", "small\ncat.jpg"}}
    assert listed(tmp_path / "b") == []
    assert "in both dark.jpg and small␊cat.jpg" in (tmp_path / "b" / "index.html").read_text()


def test_the_last_stored_copy_is_neither_listed_nor_shown_as_one_that_can_go(tmp_path: Path) -> None:
    """cat: pixel-equal to one at a URL. dog: two stored beside it. fox: both stored. owl: both at URLs."""
    owl = [source("url/owl.jpg", 50, pixels="owl"), source("url/owl 2.jpg", pixels="owl")]
    dogs = [source("url/dog.jpg", 50, pixels="dog"), source("dog.jpg", 41, pixels="dog"), source("b.jpg", pixels="dog")]
    fox = [source("fox.jpg", 50, pixels="fox"), source("fox 2.jpg", pixels="fox")]
    cat = [source("url/cat.jpg", 50, pixels="cat"), source("cat.jpg", pixels="cat")]
    pictures = {"cat": cat, "dog": dogs, "fox": fox, "owl": owl}
    write(tmp_path / "pairs" / "0.parquet", pictures, [(each, each, 0) for each in pictures])
    run(tmp_path / "pairs", tmp_path / "out", "url/cat.jpg", "url/dog.jpg", "url/owl.jpg", "url/owl 2.jpg")
    assert listed(tmp_path / "out") == ["b.jpg", "fox 2.jpg", "url/owl 2.jpg"]
    assert {"url/dog.jpg", "fox.jpg", "url/owl.jpg"} == kept(tmp_path / "out", "groups.jsonl").keys()
    dog = next(each for each in groups(tmp_path / "out", "groups.jsonl") if each["keep"] == "url/dog.jpg")
    assert [each["keep"] for each in dog["pictures"][0]["sources"]] == [False, True, True] and dog["frees"] == 1000
    page = (tmp_path / "out" / "index.html").read_text()
    assert "3 groups of exact copies; 3 files can go, which frees 3.0 kB" in page and "cat.jpg" not in page
    assert "1 can go, which frees 1.0 kB" in page
    run(tmp_path / "pairs", tmp_path / "across", "url/cat.jpg", ACROSS='["url", "cat.jpg"]')
    assert listed(tmp_path / "across") == []


def test_equal_pairs_give_equal_bytes(pairs: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        run(pairs, tmp_path / name)
    files = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "b").iterdir()}
    assert sorted(files) == ["groups.jsonl", "index.html", "near.html", "near.jsonl", "remove.txt"]


def test_no_pairs_are_no_groups(tmp_path: Path) -> None:
    (tmp_path / "pairs").mkdir()
    run(tmp_path / "pairs", tmp_path / "out")
    assert groups(tmp_path / "out", "groups.jsonl") == groups(tmp_path / "out", "near.jsonl") == []
    assert listed(tmp_path / "out") == []
    assert "No exact copies in the library" in (tmp_path / "out" / "index.html").read_text()


def test_wrong_parameters_and_tables_are_refused(pairs: Path, tmp_path: Path) -> None:
    for wrong in ("train", '["a"]'):
        with pytest.raises(StageError, match="must be two folders"):
            run(pairs, tmp_path / "out", ACROSS=wrong)
    for other in ({"model": "n" * 64}, {"threshold": 0.25}):
        write(pairs / "2" / "2.parquet", PICTURES, [("dog", "dog", 0)], **other)
        with pytest.raises(StageError, match="2/2.parquet has pairs of another model"):
            run(pairs, tmp_path / "out")
    with pytest.raises(StageError, match="the input pairs is missing"):
        duplicates.start({})(Datum({}, tmp_path / "out"))
