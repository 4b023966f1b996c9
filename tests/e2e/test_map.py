"""The map with all real pipelines: datums that a change computes, places that nothing else moves, and the command."""

from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.analysis.measurement import layout_fit
from pipelines.analysis.measurement.layout_fit import FittedLayout
from pipelines.errors import LookalikeError
from pipelines.transfer import vector_export
from stages.files.layout_files import FACTS
from stages.files.tables.map_table import MapTable
from tests.e2e.world import MakeWorld, Paint, World, library_specs

pytestmark = [pytest.mark.timeout(600), pytest.mark.only_in_all]


@pytest.fixture(scope="module")
def world(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> World:
    """A library with a map."""
    world = make_world("mapped")
    world.deploy(library_specs())
    world.add({f"{seed}/{number}.png": paint(seed, number) for seed in range(6) for number in range(9)})
    world.settle(world.push(backbones["first"]))
    assert "laid out 50 of 54 pictures" in world.lookalike("map", "fit", "--yes", "--seed", "1", "--sample", "50")
    return world


def places(world: World) -> dict[str, tuple[float, float, int]]:
    """Of each picture by its id."""
    found: dict[str, tuple[float, float, int]] = {}
    for table in tables(world):
        found |= dict(zip(table.ids, zip(table.x, table.y, table.clusters, strict=True), strict=True))
    return found


def tables(world: World) -> list[MapTable]:
    repo = world.repo("map")
    return [MapTable.read(pa.BufferReader(repo.read(path))) for path in repo.list("/")]


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


def test_a_layout_that_is_there_already_is_not_committed_again(world: World) -> None:
    files, before = world.repo("layouts").contents(), world.hashes("map")
    held = FittedLayout(files, {"sample": 50})
    assert layout_fit.put(world.connection, held) == ""
    other = FittedLayout({**files, FACTS: files[FACTS] + b"\n"}, {"sample": 50})
    world.settle(layout_fit.put(world.connection, other))
    world.settle(layout_fit.put(world.connection, held))
    assert world.hashes("map") == before


def test_the_sample_follows_from_the_ids_alone(world: World) -> None:
    ids = {name: list(table.ids) for name, table in vector_export.plan(world.connection).segments.items()}
    chosen = layout_fit.chosen_rows(ids, 20)
    expected = sorted((id for some in ids.values() for id in some), key=lambda id: (id[1:], id))[:20]
    assert [ids[name][row] for name, row in chosen] == sorted(expected)
    assert layout_fit.chosen_rows(dict(reversed(ids.items())), 20) == chosen


def test_another_model_leaves_the_map_without_places_and_no_failed_job(
    world: World, backbones: dict[str, Path]
) -> None:
    before = places(world)
    jobs = world.settle(world.push(backbones["second"]))
    assert {each.state for each in jobs.values()} == {"success"}
    assert tables(world) and all(not len(each) and "lookalike map fit" in each.stale for each in tables(world))
    world.settle(world.push(backbones["first"]))
    assert places(world) == before
    assert "pipeline map: deleted" in world.lookalike("map", "off")


def test_a_library_without_pictures(make_world: MakeWorld) -> None:
    empty = make_world("unmapped")
    with pytest.raises(LookalikeError, match="the library has no index yet: add pictures with `lookalike add`"):
        layout_fit.fit(empty.connection)
