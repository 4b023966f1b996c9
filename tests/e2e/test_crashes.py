"""A server that is killed during each stage continues afterwards and produces the same bytes."""

from pathlib import Path

import pytest

from tests.e2e.oracle import Oracle
from tests.e2e.world import MakeWorld, Paint, World

pytestmark = pytest.mark.timeout(600)

STAGES = ("preprocess", "features", "partition", "index", "search", "render")


def first_words(world: World, pipeline: str, commit: str) -> str:
    """The first line that a job's user code writes, before it imports its dependencies."""
    lines = world.client.get_job_logs(pipeline, commit, follow=True)
    return next(str(line.message) for line in lines if line.user)


def test_a_server_killed_during_each_stage_produces_the_same_bytes(
    make_world: MakeWorld, backbones: dict[str, Path], paint: Paint, tmp_path: Path
) -> None:
    world = make_world("killed", late=True, forks=False)  # so it is also killed while commits are finishing
    world.deploy()
    library = {f"{seed}.png": paint(seed) for seed in range(1, 13)}
    commits = [world.add(library | {"bad.png": b"no picture", "cut.png": paint(1)[:-100]})]
    commits.append(world.query("one.png", paint(1)))
    commits.append(world.query("more", {f"{seed}.jpg": paint(seed, kind="JPEG") for seed in (3, 20)}))
    commits.append(world.push(backbones["first"]))
    for stage in STAGES:
        commit = commits[0] if stage == "preprocess" else commits[-1]
        assert first_words(world, stage, commit).startswith(f"{stage}: ")
        world = world.killed()
    jobs = world.settle(*commits)
    # This stage was certainly interrupted: importing TensorFlow takes seconds.
    assert jobs["features"].restart >= 1
    expected = Oracle(backbones["first"], tmp_path / "oracle").outputs(
        world.content("images"), world.content("masks"), world.content("queries")
    )
    assert {stage: world.content(stage) for stage in expected} == expected
