"""Processes that are kept between jobs: the same changes, other backbones and bad pictures among them, must give the
same files, hashes and datums as with a new process for each job."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.specifications import optional_specs
from pipelines.specifications.pipeline_specs import SHIPPED_SPECS, PipelineSpec
from speclang import warm_annotations
from tests.e2e.test_workers import Change, several_changes, story
from tests.e2e.world import MakeWorld, Paint, specs

pytestmark = pytest.mark.timeout(600)


def cold(every: Iterable[PipelineSpec]) -> list[PipelineSpec]:
    """The specifications without the annotations for warm processes."""
    return [
        replace(spec, document={name: value for name, value in spec.document.items() if name != "metadata"})
        for spec in every
    ]


def test_every_pipeline_asks_for_it() -> None:
    asking = [*specs(), *optional_specs.required_specs(SHIPPED_SPECS, "classify")]
    assert all(warm_annotations.read(spec.document["metadata"]["annotations"]) is not None for spec in asking)


def test_warm_processes_give_what_new_ones_give(
    make_world: MakeWorld, paint: Paint, backbones: dict[str, Path]
) -> None:
    put, *_ = several_changes(paint)
    changes: list[Change] = [
        lambda world: [world.push(backbones["first"]), *put(world)],
        lambda world: [
            world.add({"0.png": paint(51), "9.png": paint(60), "bad.png": b"not a picture"}),
            world.remove("1.png"),
            world.query("late.png", paint(51)),
            world.forget("one.png"),
        ],
        lambda world: [world.push(backbones["second"])],
        lambda world: [world.query("one.png", paint(61)), world.push(backbones["first"])],
    ]
    warm, other = make_world("warm"), make_world("cold")
    assert story(warm, specs(), 1, changes) == story(other, cold(specs()), 1, changes)
    names = {spec.name for spec in specs()}
    assert warm.taken_over(names) == names
    assert other.taken_over(names) == set()
