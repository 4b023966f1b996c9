"""The map with all real pipelines: datums that a change computes, places that nothing else moves, and the command."""

from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.analysis.measurement import layout_fit
from stages.files.layout_files import FACTS
from stages.files.tables.map_table import MapTable
from tests.e2e.world import MakeWorld, Paint, World

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def world(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> World:
    """A library with a map."""
    world = make_world("mapped")
    world.deploy()
    world.add({f"{seed}/{number}.png": paint(seed, number) for seed in range(6) for number in range(8)})
    world.settle(world.push(backbones["first"]))
    said = world.lookalike("map", "fit", "--yes", fails=True)
    assert "a map needs at least 50 pictures, and the library has 48: add more" in said
    world.settle(world.add({f"more/{number}.png": paint(7, number) for number in range(6)}))
    assert "laid out 54 of 54 pictures" in world.lookalike("map", "fit", "--yes", "--seed", "1")
    return world


def places(world: World) -> dict[str, tuple[float, float, int]]:
    """Of each picture by its id."""
    repo, found = world.repo("map"), {}
    for path in repo.list("/"):
        table = MapTable.read(pa.BufferReader(repo.read(path)))
        found |= {id: each for id, *each in zip(table.ids, table.x, table.y, table.clusters, strict=True)}
    return {id: tuple(each) for id, each in found.items()}


def test_one_more_picture_costs_its_segment_and_moves_no_other(world: World, paint: Paint) -> None:
    before, files = places(world), world.hashes("map")
    assert len(before) == 54
    segments = len([*world.repo("index").list("/")])
    jobs = world.settle(world.add({"another.png": paint(90, 3)}))
    assert (jobs["map"].processed, jobs["map"].failed) == (1, 0) and jobs["map"].skipped >= segments - 1
    after = places(world)
    assert {id: after[id] for id in before} == before and len(after) == 55
    assert len([path for path, found in world.hashes("map").items() if files.get(path) != found and path != "/"]) == 1
    jobs = world.settle(world.remove("another.png"))
    assert jobs["map"].processed <= 1 and world.hashes("map") == files


def test_another_layout_places_all_and_the_same_one_is_not_committed(world: World) -> None:
    files = world.hashes("map")
    commits = len([*world.repo("layouts").list("/")])
    assert "there already" in world.lookalike("map", "fit", "--yes", "--seed", "1")
    assert len([*world.repo("layouts").list("/")]) == commits and world.hashes("map") == files
    assert "laid out 54 of 54 pictures" in world.lookalike("map", "fit", "--yes", "--seed", "2")
    assert world.hashes("map") != files
    assert b'"seed": 2' in world.repo("layouts").read(f"/{FACTS}")


def test_the_sample_is_the_same_for_the_same_library(world: World) -> None:
    few = [layout_fit.fit(world.connection, 50, 0).facts for _ in range(2)]
    assert few[0]["sample"] == 50 and few[0]["sample_sha256"] == few[1]["sample_sha256"]


def test_another_model_leaves_the_map_without_places_and_no_failed_job(
    world: World, backbones: dict[str, Path]
) -> None:
    jobs = world.settle(world.push(backbones["second"]))
    assert {each.state for each in jobs.values()} == {"success"}
    repo = world.repo("map")
    tables = [MapTable.read(pa.BufferReader(repo.read(path))) for path in repo.list("/")]
    assert tables and all(not len(each) and "lookalike map fit" in each.stale for each in tables)
    world.lookalike("map", "fit", "--yes")
    assert len(places(world)) == 54
    assert "pipeline map: deleted" in world.lookalike("map", "off")
