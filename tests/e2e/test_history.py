"""The history of a library and the difference between two moments, with all pipelines, and pictures put back."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.world import MakeWorld, Paint, World, specs, with_environment

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Story:
    """A library with a few changes: the commit of each by name."""

    world: World
    commits: dict[str, str]


@pytest.fixture(scope="module")
def story(
    make_world: MakeWorld, paint: Paint, backbones: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    world = make_world("history")
    made = {}
    world.deploy()
    world.push(backbones["first"])
    made["added"] = world.add({f"trip/{name}.png": paint(number) for number, name in enumerate("abcde")})
    made["asked"] = world.query("mine", {"a.png": paint(0), "other.png": paint(9)})
    world.settle(*made.values())
    made["removed"] = world.remove("trip/a.png")
    world.settle(made["removed"])
    made["replaced"] = world.add({"trip/b.png": paint(0, variant=1)})
    world.settle(made["replaced"])
    made["pushed"] = world.push(backbones["second"])
    world.settle(made["pushed"])
    world.deploy(
        [with_environment(each, K="2") if "K" in each.document["transform"]["env"] else each for each in specs()]
    )
    made["deployed"] = next(iter(world.client.list_job("render"))).job.id
    world.settle(made["deployed"])
    yield Story(world, made)
    os.environ.pop("XDG_CACHE_HOME")
    if before is not None:
        os.environ["XDG_CACHE_HOME"] = before


def data(story: Story, *arguments: str) -> Any:
    return json.loads(story.world.lookalike(*arguments, "--json"))


@pytest.mark.only_in_all
def test_every_change_has_its_effect(story: Story) -> None:
    found = {each["ids"][0]: each for each in data(story, "history")}
    made = {name: found[commit] for name, commit in story.commits.items()}
    assert [*found][:5] == [story.commits[name] for name in ("deployed", "pushed", "replaced", "removed", "asked")]
    assert made["added"]["pictures"] == {"added": 5, "changed": 0, "removed": 0, "rejected": 0}
    assert made["asked"]["answers"] == {"changed": 0, "new": 2, "gone": 0}
    assert made["removed"]["answers"]["changed"] >= 1
    assert made["pushed"]["model"]["before"].startswith("first at 96 px ")
    assert made["pushed"]["model"]["after"].startswith("second at 96 px ")
    assert made["deployed"]["settings"] == [
        {"name": "K", "before": "3", "after": "2", "pipelines": ["render", "search"]}
    ]
    assert made["deployed"]["answers"] == {"changed": 2, "new": 0, "gone": 0}
    said = story.world.lookalike("history", "trip/b.png")
    assert [line for line in said.splitlines() if line.startswith("  images")] == [
        "  images: replaced trip/b.png",
        "  images: added trip/b.png",
    ]


def test_each_difference_between_two_moments_has_its_reason(story: Story) -> None:
    commits = story.commits
    found = data(story, "diff", commits["asked"], commits["removed"])
    assert (found["pictures"]["removed"], found["model"], found["settings"]) == (["trip/a.png"], None, [])
    (query,) = [each for each in found["queries"] if "mine/a.png" in each["new"]["sources"]]
    gone = [each for each in query["differences"] if each["new_rank"] is None]
    assert [(each["sources"], each["old_rank"], each["reasons"][0]["reason"]) for each in gone] == [
        (["trip/a.png"], 1, "picture removed")
    ]
    assert found["reasons"]["picture removed"] == len(found["queries"])
    found = data(story, "diff", commits["removed"], commits["replaced"])
    assert found["pictures"]["changed"] == ["trip/b.png"]
    assert "picture replaced" in found["reasons"]
    found = data(story, "diff", commits["replaced"], commits["pushed"])
    assert found["model"]["after"].startswith("second")
    assert {*found["reasons"]} <= {"model"}
    found = data(story, "diff", commits["pushed"])
    assert found["new"]["id"] == commits["deployed"]
    assert found["reasons"] == {"parameters": 2}
    assert data(story, "diff", commits["pushed"], commits["pushed"])["queries"] == []


def test_the_page_shows_both_rows_with_their_pictures(story: Story) -> None:
    said = story.world.lookalike("diff", story.commits["asked"], story.commits["removed"])
    assert "trip/a.png  picture removed" in said
    page = story.world.scratch / "results" / f"diff-{story.commits['asked'][:8]}-{story.commits['removed'][:8]}.html"
    text = page.read_text()
    assert "gone: picture removed" in text
    assert text.count("<h3>before</h3>") == text.count("<h3>after</h3>") >= 1
    assert "no preview" not in text
    assert text.count("data:image/jpeg;base64,") >= 7
    assert "<script" not in text


def test_moments_without_answers_are_refused(story: Story) -> None:
    world = story.world
    assert "no commit has an id that begins with 0000" in world.lookalike("diff", "0000", fails=True)
    assert "is before the first commit" in world.lookalike("diff", "2001-01-01", fails=True)
    assert "is not a valid commit or date" in world.lookalike("diff", "?", fails=True)
    assert "there were no answers at" in world.lookalike(
        "diff", list(data(story, "history"))[-1]["ids"][-1], fails=True
    )


@pytest.mark.only_in_all
def test_a_restored_library_answers_as_it_did(story: Story, backbones: dict[str, Path]) -> None:
    world, then = story.world, story.commits["asked"]
    world.deploy()
    world.settle(world.push(backbones["first"]))
    said = world.lookalike("restore", "trip", "--at", then, "--replace")
    assert "restored 1: trip/a.png; replaced 1: trip/b.png; 3 there already, and equal in images\n" in said
    assert world.trees() == world.trees(then)
    assert data(story, "diff", then)["queries"] == []
    newest = data(story, "history", "images")[0]
    assert (newest["pictures"], newest["description"]) == (
        {"added": 1, "changed": 1, "removed": 0, "rejected": 0},
        f"restore trip --at {then} --replace",
    )
