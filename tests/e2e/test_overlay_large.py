"""The overlay large: more and smaller buckets of partition, and the same library below them."""

from pathlib import Path

import pytest

from pipelines.specifications import drafts, overlays, pipeline_specs
from stages.record import part_names
from tests.e2e.world import Job, MakeWorld, Paint, World, specs
from tests.small_archives import zipped

pytestmark = pytest.mark.timeout(600)

LONE = 30
"""Pictures in files of their own: so many that some share one of the 64 buckets, and none of the 1,024."""


def overlaid() -> list[pipeline_specs.PipelineSpec]:
    """The specifications with the overlay."""
    changed = overlays.apply([overlays.load("large")], drafts.find([pipeline_specs.SHIPPED_SPECS]))
    (partition,) = (draft.spec() for draft in changed if draft.name == "partition")
    return [partition if each.name == "partition" else each for each in specs()]


def deployed(world: World, which: list[pipeline_specs.PipelineSpec]) -> dict[str, Job]:
    """The jobs of a deployment that changes partition alone."""
    done = world.deploy(which)
    assert {name for name, action in done.items() if action != "unchanged"} == {"partition"}
    return world.settle(world.newest("partition"))


def test_more_buckets_give_the_same_pictures_and_answers_without_a_forward_pass(
    make_world: MakeWorld, backbones: dict[str, Path], paint: Paint
) -> None:
    world = make_world("large")
    world.deploy()
    lone = {f"{seed}.png": paint(seed) for seed in range(LONE)}
    twice = {f"{seed}.png": paint(seed) for seed in (0, LONE)}  # one of them is in two parts, of two buckets
    world.add({**lone, "some.zip": zipped(twice)})
    world.query("red.png", paint(LONE + 1))
    world.settle(world.push(backbones["first"]))

    before = world.trees()
    buckets = {part_names.directory(part_names.source_name(each)) for each in (*lone, "some.zip")}
    coarse = {each.partition("/")[0] for each in buckets}
    assert len(coarse) < len(buckets)
    assert {Path(path).stem for path in before["partition"] if path.endswith(".npy")} == coarse

    jobs = deployed(world, overlaid())
    assert jobs.keys() == {"partition", "index", "search", "render"}
    assert (jobs["partition"].processed, jobs["partition"].skipped) == (len(buckets), 0)
    fine = world.hashes("partition")
    assert {Path(path).stem for path in fine if path.endswith(".npy")} == {each.replace("/", "-") for each in buckets}
    assert world.hashes("index") == before["index"]
    assert world.hashes("search") == before["search"]
    assert (jobs["render"].processed, world.hashes("render")) == (0, before["render"])

    assert deployed(world, specs())["partition"].processed == len(coarse)
    assert world.trees() == before
