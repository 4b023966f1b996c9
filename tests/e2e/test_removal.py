"""Pictures of a block removed, brought back, replaced and purged: what is computed, and what commands say of it."""

import json
from pathlib import Path

import pytest

from tests.e2e.world import Job, MakeWorld, Paint, World

pytestmark = pytest.mark.timeout(600)

FORWARD = ("preprocess", "features")
"""The pipelines that decode pictures, and compute vectors."""


@pytest.fixture(scope="module")
def world(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> World:
    """A library of one block."""
    world = make_world("removal")
    world.deploy()
    world.add({f"{folder}/{n}.png": paint(10 * n + len(folder)) for folder in ("a", "bc") for n in range(9)}, 8)
    jobs = world.settle(world.push(backbones["first"]))
    assert jobs["features"].counts == (1, 0, 0)
    return world


def computed(jobs: dict[str, Job]) -> list[int]:
    """The datums of FORWARD that a change computed."""
    return [jobs[each].processed if each in jobs else 0 for each in FORWARD]


def last_change(world: World) -> dict[str, object]:
    """The pictures of the newest change of the library, in numbers."""
    (found,) = json.loads(world.lookalike("history", "images", "--limit", "1", "--no-answers", "--json"))
    return {name: number for name, number in found["pictures"].items() if number}


def indexed(world: World) -> int:
    return sum(json.loads(data)["count"] for _, data in world.repo("index").read_all("/*/index.json"))


def test_only_new_pictures_are_computed(world: World, paint: Paint) -> None:
    before = world.hashes("index")
    said = world.lookalike("remove", "a", "bc/1.png")
    assert "removed 10 files from images: 10 are hidden in their blocks, which keep the bytes" in said
    removed = world.newest("partition")
    assert computed(world.settle(removed)) == [0, 0]
    assert (indexed(world), last_change(world)) == (8, {"removed": 10})
    assert "neither a file" in world.lookalike("show", "a/1.png", fails=True)

    world.lookalike("undo", "--yes")
    assert computed(world.settle(world.newest("partition"))) == [0, 0]
    assert (world.hashes("index"), last_change(world)) == (before, {"added": 10})

    assert computed(world.settle(world.add({"a/1.png": paint(77)}))) == [1, 1]
    assert (indexed(world), last_change(world)) == (18, {"changed": 1})
    world.lookalike("restore", "a/1.png", "--at", f"{removed}^", "--replace")
    assert computed(world.settle(world.newest("partition"))) == [0, 0]
    assert (world.hashes("index"), last_change(world)) == (before, {"changed": 1})


def test_a_purged_picture_is_in_no_commit(world: World, paint: Paint) -> None:
    world.lookalike("remove", "a/2.png")
    said = world.lookalike("remove", "--purge", "--squash", "a/2.png", "bc/3.png", "--yes")
    assert "writes 1 new block in place of 1 block: 16 pictures to decode and compute again" in said
    assert "no commit holds the bytes any more" in said
    assert "deleted these 2 pictures from images" in said
    assert computed(world.settle(world.newest("partition"))) == [1, 1]
    assert (indexed(world), last_change(world)) == (16, {"added": 16})
    secret = paint(21)
    assert all(secret not in data for each in world.commits() for _, data in world.repo("images", each).read_all("/**"))


@pytest.mark.only_in_all
def test_an_imported_library_hides_the_same(world: World, make_world: MakeWorld) -> None:
    file = world.scratch / "library.tar"
    world.lookalike("remove", "bc/4.png")
    world.lookalike("export", file)
    other = make_world("imported")
    other.deploy()
    other.lookalike("import", file)
    other.settle(other.newest("index"))
    assert other.hashes("index") == world.hashes("index")
