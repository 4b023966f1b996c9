"""The preview: the number of datums of a specification's inputs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.checks import datum_counts
from pipelines.specifications.findings import FlawLevel
from speclang.globs import Glob


@pytest.fixture
def library(tmp_path: Path) -> Path:
    for name in ("a.jpg", "b.jpg", "c.png", "holiday/d.jpg", "holiday/e.jpg", "holiday/deep/f.jpg"):
        path = tmp_path / "library" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "library" / "empty").mkdir()
    return tmp_path / "library"


@pytest.mark.parametrize(
    ("pattern", "number"),
    [
        ("/", 1),
        ("/*", 4),
        ("/*.jpg", 2),
        ("/**", 8),
        ("/*/*", 3),
        ("/**.jpg", 5),
        ("/{a,b}.*", 2),
        ("/holiday", 1),
        ("/!(a*|c*)", 2),
        ("/!(holiday)", 3),
        ("/[[:alpha:]].*", 3),
        ("/holiday/(d*", 2),
    ],
)
def test_a_directory_is_counted_as_if_it_were_put(draft: Any, library: Path, pattern: str, number: int) -> None:
    one = draft(input={"pfs": {"repo": "images", "glob": pattern}})
    (flaw,) = datum_counts.check(one, {"images": datum_counts.listed(library)})
    assert flaw.level == FlawLevel.NOTE
    assert flaw.why == f"this gives {number} datum" + "s" * (number > 1)


def test_no_match_and_very_many(draft: Any, library: Path) -> None:
    one = draft(input={"pfs": {"repo": "images", "glob": "/*.gif"}})
    (flaw,) = datum_counts.check(one, {"images": datum_counts.listed(library)})
    assert (flaw.level, flaw.why[:15]) == (FlawLevel.WARNING, "matches nothing")

    def many(_: Glob) -> Iterator[str]:
        return (f"/{number}" for number in range(100_000))

    (flaw,) = datum_counts.check(draft(), {"images": many})
    assert flaw.level == FlawLevel.WARNING
    assert flaw.why == "this gives 100,000 datums, 8 minutes of bookkeeping in one worker"
    assert not list(datum_counts.check(draft(), {"others": many}))


JPG, PNG = ({"repo": "images", "name": name, "glob": f"/(*).{name}"} for name in ("jpg", "png"))


@pytest.mark.parametrize(
    ("tree", "number"),
    [
        ({"cross": [{"pfs": JPG}, {"pfs": {"repo": "images", "name": "all", "glob": "/*"}}]}, 8),
        ({"union": [{"pfs": JPG}, {"pfs": PNG}]}, 3),
        ({"join": [{"pfs": {**JPG, "join_on": "$1"}}, {"pfs": {**PNG, "join_on": "$1"}}]}, 0),
        ({"join": [{"pfs": {**JPG, "join_on": "$1", "outer_join": True}}, {"pfs": {**PNG, "join_on": "$1"}}]}, 2),
        ({"join": [{"pfs": {**JPG, "join_on": "k"}}, {"pfs": {**PNG, "join_on": "k"}}]}, 2),
        ({"group": [{"pfs": {**JPG, "group_by": "$1"}}, {"pfs": {**PNG, "group_by": "$1"}}]}, 3),
        ({"cross": [{"union": [{"pfs": JPG}, {"pfs": PNG}]}, {"pfs": {**JPG, "name": "j2"}}]}, 6),
    ],
)
def test_combinations(draft: Any, library: Path, tree: dict[str, Any], number: int) -> None:
    flaws = list(datum_counts.check(draft(input=tree), {"images": datum_counts.listed(library)}))
    assert flaws[-1].field == ("input",)
    assert flaws[-1].why == f"together these give {number} datum" + "s" * (number != 1)


def test_only_joins_of_repos_are_counted(draft: Any, library: Path) -> None:
    inner = {"cross": [{"pfs": {**PNG, "join_on": "$1"}}]}
    nested = draft(input={"join": [{"pfs": {**JPG, "join_on": "$1"}}, inner]})
    found = list(datum_counts.check(nested, {"images": datum_counts.listed(library)}))
    assert [flaw.why for flaw in found] == ["matches 2 in images", "matches 1 in images"]
