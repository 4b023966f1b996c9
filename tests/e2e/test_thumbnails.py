"""Thumbnails go past the index: it passes the files of partition on by reference, and no update of it rewrites one."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.client.repository import Remove
from tests.e2e.test_increments import id_of, variants
from tests.e2e.world import MakeWorld, Paint, World

pytestmark = pytest.mark.timeout(600)

Sizes = dict[str, int]
"""Bytes of files by path."""


@dataclass(frozen=True)
class Step:
    """The state after a change. downloaded: the bytes that the job of the index fetched. partition, index: the hash
    of every file by path; vectors: the bytes of those of partition that are not thumbnails."""

    processed: int
    downloaded: int
    partition: dict[str, bytes]
    index: dict[str, bytes]
    vectors: Sizes

    @property
    def passed_on(self) -> dict[str, bytes]:
        """The thumbnails of the index by their paths in partition."""
        found = {}
        for path, hash in self.index.items():
            _, segment, *below = path.split("/")
            if len(below) == 2 and below[0] == "thumbnails" and below[1]:
                found[f"/thumbnails/{segment}/{below[1]}"] = hash
        return found

    @property
    def made(self) -> dict[str, bytes]:
        """The thumbnails of partition by path."""
        return {path: hash for path, hash in self.partition.items() if path.endswith(".thumbnails")}


def seen(world: World, commit: str) -> Step:
    """The state once the jobs of a commit set have ended."""
    jobs = world.settle(commit)
    (info,) = world.client.inspect_job(commit, "index")
    files = world.content("partition")
    return Step(
        jobs["index"].processed,
        info.stats.download_bytes,
        world.hashes("partition"),
        world.hashes("index"),
        {path: len(data) for path, data in files.items() if path.startswith("/library/")},
    )


@pytest.fixture(scope="module")
def steps(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> dict[str, Step]:
    """One picture more, other bytes of it, and one less. The first, the added and the twenty others are lone pictures,
    so a part is one of four ranges of ids in a segment."""
    world = make_world("thumbnails")
    world.deploy()
    segment = id_of(paint(1))[0]
    known = list(itertools.islice(variants(paint, 1, segment), 12))
    first, added, changed = known[0], known[1], next(each for each in known[2:] if bucket(each) == bucket(known[1]))
    assert any(bucket(each) != bucket(added) for each in known[2:])
    others = {f"{number}.png": each for number, each in enumerate([*known[2:], *map(paint, range(30, 40))])}
    world.add({"first.png": first, **{name: each for name, each in others.items() if each != changed}})
    found = {"built": seen(world, world.push(backbones["first"]))}
    found["added"] = seen(world, world.add({"more.png": added}))
    found["changed"] = seen(world, world.add({"more.png": changed}))
    found["removed"] = seen(world, world.remove("more.png"))
    found["emptied"] = seen(world, world.repo("images").write([Remove("/")]))
    return found


def bucket(picture: bytes) -> str:
    """Pictures of one digit here are in one part: the 64 buckets of lone pictures share ids by their first bits."""
    return f"{int(id_of(picture)[:2], 16) // 4:02x}"


@pytest.mark.parametrize("name", ["built", "added", "changed", "removed"])
def test_the_index_has_the_files_of_partition(steps: dict[str, Step], name: str) -> None:
    step = steps[name]
    assert step.passed_on == step.made
    assert len(step.made) > 8
    assert not any(path.endswith("thumbnails.arrow") for path in step.index)


@pytest.mark.parametrize("name", ["built", "added", "changed", "removed"])
def test_the_index_fetches_no_thumbnail(steps: dict[str, Step], name: str) -> None:
    """It fetches the other files of the segments that it computes, to the byte. So what it writes cannot be a copy."""
    step = steps[name]
    segments = {path.split("/")[2] for path in step.vectors}
    if name != "built":
        before = steps[{"added": "built", "changed": "added", "removed": "changed"}[name]]
        segments = {path.split("/")[2] for path in step.vectors if step.partition[path] != before.partition.get(path)}
        assert len(segments) == 1
    assert step.processed == len(segments)
    assert step.downloaded == sum(size for path, size in step.vectors.items() if path.split("/")[2] in segments) > 0


@pytest.mark.parametrize(("before", "after"), [("built", "added"), ("added", "changed"), ("changed", "removed")])
def test_buckets_without_a_change_stay_as_they_are(steps: dict[str, Step], before: str, after: str) -> None:
    old, new = steps[before], steps[after]
    changed = {path for path in old.made.keys() | new.made.keys() if old.made.get(path) != new.made.get(path)}
    assert len(changed) == 1
    (segment,) = {path.split("/")[2] for path in changed}
    others = [path for path in new.passed_on if path.split("/")[2] == segment and path not in changed]
    assert others  # in the segment that was written again
    assert all(new.passed_on[path] == old.passed_on[path] for path in others)


def test_what_was_added_and_removed_leaves_no_trace(steps: dict[str, Step]) -> None:
    assert steps["removed"].index == steps["built"].index
    assert steps["removed"].partition == steps["built"].partition
    assert steps["emptied"].made == steps["emptied"].passed_on == {}
