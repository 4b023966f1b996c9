"""The library evaluated with real pipelines: the datums that labels and pictures compute. Its bytes are compared with
those of a rebuild in `test_neighbours`."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.client.repository import PutFile
from pipelines.specifications import optional_specs
from pipelines.specifications.pipeline_specs import SHIPPED_SPECS
from tests.e2e.world import MakeWorld, Paint, World, library_specs

pytestmark = [pytest.mark.timeout(600), pytest.mark.only_in_all]

OPT_IN = optional_specs.required_specs(SHIPPED_SPECS, "evaluate")
SEEDS = range(4)


def library(paint: Paint) -> dict[str, bytes]:
    """Near-duplicates of four pictures, in four folders."""
    return {f"{seed}/{number}.png": paint(seed, number) for seed in SEEDS for number in range(4)}


def put_labels(world: World, names: list[str]) -> str:
    """Labels pictures with their folders; returns the commit."""
    rows = "".join(f"{name},{name.split('/')[0]}\n" for name in names)
    return world.repo("labels").write([PutFile("/mine.csv", f"source,label\n{rows}".encode())])


def metrics(world: World) -> Any:
    return json.loads(world.repo("evaluate").read("/metrics.json"))


def test_labels_and_pictures_compute_what_follows_from_them(
    make_world: MakeWorld, backbones: dict[str, Path], paint: Paint
) -> None:
    pictures, world = library(paint), make_world("evaluation")
    world.client.create_repo("labels")
    world.deploy([*library_specs(), *OPT_IN])
    world.settle(world.add(pictures), put_labels(world, list(pictures)), world.push(backbones["first"]))
    told = metrics(world)
    assert (told["pictures"], told["labelled"], told["labels"], told["note"]) == (16, 16, 4, "")
    assert told["micro"]["precision@3"]["value"] == 1.0

    jobs = world.settle(put_labels(world, list(pictures)[:8]))
    assert {name: job.processed for name, job in jobs.items()} == {"evaluate": 1}
    assert metrics(world)["labelled"] == 8

    world.settle(put_labels(world, [*pictures, "4/0.png"]))
    assert metrics(world)["left_out"]["unknown"] == {"count": 1, "examples": ["4/0.png"]}
    jobs = world.settle(world.add({"4/0.png": paint(4)}))
    assert jobs["evaluate"].processed == 1
    assert metrics(world)["left_out"]["single"] == {"count": 1, "examples": ["4"]}

    said = world.lookalike("evaluate")
    assert "17 of 17 pictures with a label, 5 labels: 16 queries\n" in said
    assert "left out:\n  pictures that alone have their label: 1, such as 4\n" in said
