"""A server that is killed in the middle of every stage goes on with the chain and comes to the same bytes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

KILLED_IN = ("preprocess", "features", "index", "search", "render")


def put_all(world: Any, paint: Any, backbone: Path) -> list[str]:
    """Some pictures, two of them bad, two queries, and a backbone; returns the commits."""
    library = {f"{seed}.png": paint(seed) for seed in range(1, 13)}
    commits = [world.add(library | {"bad.png": b"no picture", "cut.png": paint(1)[:-100]})]
    commits.append(world.query("one.png", paint(1)))
    commits.append(world.query("more", {f"{seed}.jpg": paint(seed, kind="JPEG") for seed in (3, 20)}))
    return [*commits, world.push(backbone)]


def first_words(world: Any, pipeline: str, commit: str) -> str:
    """What the user code of a job says first, as soon as it does: before it imports what it needs."""
    lines = world.client.get_job_logs(pipeline, commit, follow=True)
    return next(str(line.message) for line in lines if line.user)


@pytest.fixture(scope="module")
def undisturbed(
    make_world: Callable[[str], Any], backbones: dict[str, Path], paint: Any
) -> dict[str, dict[str, bytes]]:
    """The trees as they come out where nobody interferes."""
    world = make_world("undisturbed")
    world.deploy()
    world.settle(*put_all(world, paint, backbones["first"]))
    return dict(world.trees())


def test_a_killed_server_goes_on_and_comes_to_the_same_bytes(
    make_world: Callable[[str], Any], undisturbed: dict[str, dict[str, bytes]], backbones: dict[str, Path], paint: Any
) -> None:
    world = make_world("killed")
    world.deploy()
    commits = put_all(world, paint, backbones["first"])
    for pipeline in KILLED_IN:
        commit = commits[0] if pipeline == "preprocess" else commits[-1]
        assert first_words(world, pipeline, commit).startswith(f"{pipeline}: ")
        world = world.killed()
    jobs = world.settle(*commits)
    # Of these one can be sure that they were in the middle: importing TensorFlow takes seconds.
    assert jobs["features"].restart >= 1
    assert world.trees() == undisturbed
