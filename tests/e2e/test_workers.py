"""Autoscaling pipelines with several workers on one server, and with one worker on another: the same changes must give
the same files, hashes and datum counts, whichever worker took a datum, and with fewer GPUs than workers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.specifications.pipeline_specs import PipelineSpec
from tests.conditions import until
from tests.e2e.world import Paint, World, specs
from tests.servers import Localpachd, StartPachd

pytestmark = pytest.mark.timeout(300)

GPUS = "2"

CROSSED = """
pfs="${LOCALPACHD_PFS:-/pfs}"
part="$(basename "$library")"
for entry in "$pfs"/asked/*; do
    mkdir -p "$pfs/out/$(basename "$entry")"
    cat $(find "$entry" -type f | sort) "$library"/* | cksum > "$pfs/out/$(basename "$entry")/$part"
done
echo "$part is done"
"""
"""A file for each entry and part."""

GATHERED = """
pfs="${LOCALPACHD_PFS:-/pfs}"
test "$(basename "$entry")" != several
cat "$entry"/* > "$pfs/out/$(basename "$entry")"
"""
"""The files of each entry as one; the datum of one entry is recovered."""


@dataclass(frozen=True)
class State:
    """The jobs of one change with their datums processed, skipped and failed; the state of every datum by id; and the
    hashes and the files of all outputs."""

    counts: dict[str, tuple[int, int, int]]
    datums: dict[str, dict[str, str]]
    hashes: dict[str, dict[str, bytes]]
    files: dict[str, dict[str, bytes]]


Change = Callable[[World], Iterable[str]]
"""Makes a change and returns its commits."""


def scaled(specs: Iterable[PipelineSpec], workers: int) -> list[PipelineSpec]:
    """The specifications with up to so many workers each and none without work."""
    fields = {"autoscaling": True, "parallelism_spec": {"constant": workers}, "datum_set_spec": {"per_worker": 1}}
    return [replace(spec, document={**spec.document, **fields}) for spec in specs]


def shell(name: str, tree: dict[str, Any], script: str) -> PipelineSpec:
    """A pipeline of a shell script with a GPU for each worker; a datum that fails is recovered."""
    document = {
        "pipeline": {"name": name},
        "input": tree,
        "transform": {"image": "shell:1", "cmd": ["sh", "-e"], "stdin": script.splitlines(), "err_cmd": ["true"]},
        "resource_limits": {"gpu": {"type": "nvidia.com/gpu", "number": 1}},
        "datum_tries": 1,
    }
    return PipelineSpec(name, Path(f"{name}.json"), document)


def small() -> list[PipelineSpec]:
    """Our first pipeline, and two shell scripts in place of those that need a backbone."""
    (first,) = [spec for spec in specs() if spec.name == "preprocess"]
    asked = {"pfs": {"name": "asked", "repo": "queries", "branch": "master", "glob": "/"}}
    library = {"pfs": {"name": "library", "repo": "preprocess", "branch": "master", "glob": "/library/*"}}
    entries = {"pfs": {"name": "entry", "repo": "crossed", "branch": "master", "glob": "/*"}}
    return [
        first,
        shell("crossed", {"cross": [asked, library]}, CROSSED),
        shell("gathered", entries, GATHERED),
    ]


def after(world: World, pipelines: Sequence[str], commits: Iterable[str]) -> State:
    """The state when all jobs of these commits have ended."""
    jobs = world.settle(*commits)
    return State(
        {name: job.counts for name, job in jobs.items()},
        {name: _states(world.client.list_datum(name, job.id)) for name, job in jobs.items()},
        {name: world.hashes(name) for name in pipelines},
        {name: world.content(name) for name in pipelines},
    )


def _states(datums: Iterable[Any]) -> dict[str, str]:
    return {info.datum.id: pps_pb2.DatumState.Name(info.state) for info in datums}


def story(world: World, specs: Sequence[PipelineSpec], workers: int, changes: Iterable[Change]) -> list[State]:
    """Deploys pipelines with so many workers and makes the changes, each when no pipeline has workers."""
    world.deploy(scaled(specs, workers))
    found = []
    for change in changes:
        until(lambda: {info.state for info in world.client.list_pipeline()} == {pps_pb2.PIPELINE_STANDBY})
        found.append(after(world, [spec.name for spec in specs], change(world)))
    return found


def workers_of(world: World, pipeline: str) -> set[str]:
    """The workers that wrote into a pipeline's log."""
    return {line.worker_id for line in world.client.get_pipeline_logs(pipeline) if line.worker_id}


@dataclass(frozen=True)
class Worlds:
    """Makes worlds on new servers with two GPUs."""

    start: StartPachd
    home: Path

    def make(self, name: str) -> World:
        def started(root: Path) -> Localpachd:
            return self.start(root, "--gpus", GPUS)

        return World(started, self.home / name, self.home / f"{name}-files")


@pytest.fixture
def worlds(start_pachd: StartPachd, tmp_path: Path) -> Worlds:
    return Worlds(start_pachd, tmp_path)


def several_changes(paint: Paint) -> list[Change]:
    """Pictures and queries put, added, changed and removed, one by one and together."""
    many = {f"holiday/{number}.png": paint(number, size=32) for number in range(8)}
    return [
        lambda world: [
            world.query("one.png", paint(3)),
            world.query("several", {"a.png": paint(4), "b.png": paint(50), "bad.png": b"not a picture"}),
            world.add({f"{number}.png": paint(number) for number in range(6)}),
        ],
        lambda world: [world.add({**many, "0.png": paint(51), "bad.png": b"not a picture"})],
        lambda world: [
            world.remove("1.png", "holiday/7.png"),
            world.query("late.png", paint(51)),
            world.forget("one.png"),
        ],
    ]


def test_four_workers_give_what_one_gives(worlds: Worlds, paint: Paint) -> None:
    one = story(worlds.make("one"), small(), 1, several_changes(paint))
    world = worlds.make("four")
    assert story(world, small(), 4, several_changes(paint)) == one
    assert len(workers_of(world, "crossed")) > 1
    assert {state for each in one for states in each.datums.values() for state in states.values()} == {
        "SUCCESS", "SKIPPED", "RECOVERED",
    }  # fmt: skip


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_any_number_of_workers_gives_what_one_gives(worlds: Worlds, paint: Paint, backbones: dict[str, Path]) -> None:
    changes: list[Change] = [
        lambda world: [world.push(backbones["first"])],
        *several_changes(paint),
        lambda world: [world.push(backbones["second"])],
        lambda world: [world.add({"9.png": paint(60)}), world.remove("2.png"), world.query("one.png", paint(61))],
    ]
    one = story(worlds.make("1"), specs(), 1, changes)
    for workers in (2, 3, 5, 8):
        assert story(worlds.make(str(workers)), specs(), workers, changes) == one, workers
