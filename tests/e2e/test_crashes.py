"""A server that is killed in the middle of every stage goes on with the chain and comes to the same bytes."""

from pathlib import Path

from tests.e2e.oracle import Oracle
from tests.e2e.world import MakeWorld, Paint, World

STAGES = ("preprocess", "features", "index", "search", "render")


def first_words(world: World, pipeline: str, commit: str) -> str:
    """What the user code of a job says first, as soon as it does: before it imports what it needs."""
    lines = world.client.get_job_logs(pipeline, commit, follow=True)
    return next(str(line.message) for line in lines if line.user)


def test_a_server_killed_in_every_stage_comes_to_the_same_bytes(
    make_world: MakeWorld, backbones: dict[str, Path], paint: Paint, tmp_path: Path
) -> None:
    world = make_world("killed")
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
    # Of this stage one can be sure that it was in the middle: importing TensorFlow takes seconds.
    assert jobs["features"].restart >= 1
    expected = Oracle(backbones["first"], tmp_path / "oracle").outputs(
        world.content("images"), world.content("queries")
    )
    assert {stage: world.content(stage) for stage in expected} == expected
