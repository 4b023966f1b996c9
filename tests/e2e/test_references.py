"""Vectors and thumbnails go past the index: it passes the files of partition on by reference, and no update of it
rewrites one."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from pipelines.client.deployment.deployment import make_repo
from pipelines.client.repository import DeleteFile, PutFile
from stages import index
from stages.datum.contract import Datum, DatumInput
from stages.files import thumbnail_files
from stages.files.tables.image_table import ImageTable
from stages.knn.code_index import FEWEST
from stages.record.origin import Origin
from stages.record.sources import Source
from tests.e2e.test_increments import id_of, variants
from tests.e2e.world import MakeWorld, Paint, World, specs, with_environment
from tests.stages.image_tables import unseen

pytestmark = pytest.mark.timeout(600)

Sizes = dict[str, int]
"""Bytes of files by path."""

KINDS = {"vectors": ".npy", "thumbnails": ".thumbnails"}
"""The files that are passed on."""


@dataclass(frozen=True)
class Step:
    """The state after a change. downloaded: the bytes that the job of the index fetched. partition, index: the hash
    of every file by path; tables: the bytes of those of partition that are tables."""

    processed: int
    downloaded: int
    partition: dict[str, bytes]
    index: dict[str, bytes]
    tables: Sizes

    @property
    def passed_on(self) -> dict[str, bytes]:
        """The vectors and thumbnails of the index by their paths in partition."""
        return passed_on(self.index)

    @property
    def made(self) -> dict[str, bytes]:
        """The vectors and thumbnails of partition by path."""
        return made(self.partition)


def made(files: dict[str, bytes]) -> dict[str, bytes]:
    """The vectors and thumbnails among the files of partition."""
    return {path: hash for path, hash in files.items() if path.endswith(tuple(KINDS.values()))}


def passed_on(files: dict[str, bytes]) -> dict[str, bytes]:
    """The vectors and thumbnails among the files of an index, by their paths in partition."""
    found = {}
    for path, hash in files.items():
        _, segment, *below = path.split("/")
        if len(below) == 2 and below[0] in KINDS and below[1]:
            found[f"/{below[0]}/{segment}/{below[1]}"] = hash
    return found


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
    world = make_world("references")
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
    found["emptied"] = seen(world, world.repo("images").write([DeleteFile("/")]))
    return found


def bucket(picture: bytes) -> str:
    """Pictures of one digit here are in one part: the 64 buckets of lone pictures share ids by their first bits."""
    return f"{int(id_of(picture)[:2], 16) // 4:02x}"


@pytest.mark.parametrize("name", ["built", "added", "changed", "removed"])
def test_the_index_has_the_files_of_partition(steps: dict[str, Step], name: str) -> None:
    step = steps[name]
    assert step.passed_on == step.made
    assert {kind: sum(path.startswith(f"/{kind}/") for path in step.made) > 8 for kind in KINDS} == dict.fromkeys(
        KINDS, True
    )


@pytest.mark.parametrize("name", ["built", "added", "changed", "removed"])
def test_the_index_fetches_tables_alone(steps: dict[str, Step], name: str) -> None:
    """It fetches those of the segments that it computes, to the byte. So what it passes on cannot be a copy."""
    step = steps[name]
    segments = {path.split("/")[2] for path in step.tables}
    if name != "built":
        before = steps[{"added": "built", "changed": "added", "removed": "changed"}[name]]
        segments = {path.split("/")[2] for path in step.tables if step.partition[path] != before.partition.get(path)}
        assert len(segments) == 1
    assert step.processed == len(segments)
    assert step.downloaded == sum(size for path, size in step.tables.items() if path.split("/")[2] in segments) > 0


@pytest.mark.parametrize(("before", "after"), [("built", "added"), ("added", "changed"), ("changed", "removed")])
def test_buckets_without_a_change_stay_as_they_are(steps: dict[str, Step], before: str, after: str) -> None:
    old, new = steps[before], steps[after]
    changed = {path for path in old.made.keys() | new.made.keys() if old.made.get(path) != new.made.get(path)}
    assert sorted(path.split("/")[1] for path in changed) == sorted(KINDS)
    ((segment, _),) = {(path.split("/")[2], Path(path).stem) for path in changed}
    others = [path for path in new.passed_on if path.split("/")[2] == segment and path not in changed]
    assert others  # in the segment that was written again
    assert all(new.passed_on[path] == old.passed_on[path] for path in others)


def test_what_was_added_and_removed_leaves_no_trace(steps: dict[str, Step]) -> None:
    assert steps["removed"].index == steps["built"].index
    assert steps["removed"].partition == steps["built"].partition
    assert steps["emptied"].made == steps["emptied"].passed_on == {}


def written(directory: Path) -> Path:
    """A directory as partition writes it: the segment 0, large enough for codes, in two buckets."""
    random = np.random.default_rng(0)
    for bucket in ("00", "2a"):
        ids = sorted("0" + hashlib.sha256(f"{bucket}/{number}".encode()).hexdigest()[1:] for number in range(FEWEST))
        sources = [[Source(f"{each}.png", each, 96, 96, 100, "")] for each in ids]
        images = ImageTable(
            ids=ids,
            sources=sources,
            thumbnail_sizes=[2] * len(ids),
            hashes=range(len(ids)),
            **unseen(len(ids)),
            origin=Origin("5eed" * 16, "pad", 96, 16),
        )
        for kind in ("library", *KINDS):
            (directory / kind / "0").mkdir(parents=True, exist_ok=True)
        images.write(directory / f"library/0/{bucket}.parquet")
        np.save(directory / f"vectors/0/{bucket}.npy", random.standard_normal((len(ids), 16), np.float32))
        thumbnail_files.write(directory / f"thumbnails/0/{bucket}.thumbnails", [b"tn"] * len(ids))
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    return {f"/{each.relative_to(directory)}": each.read_bytes() for each in directory.rglob("*") if each.is_file()}


def test_vectors_that_are_read_for_codes_are_passed_on_all_the_same(
    make_world: MakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read from pipes, once, and are still references: a pipe would not be kept. On plain directories the
    output is the same."""
    world, files = make_world("codes"), contents(written(tmp_path / "partition"))
    make_repo(world.connection, "partition")
    (spec,) = (with_environment(each, ALGORITHM="ivfflat") for each in specs() if each.name == "index")
    world.deploy([spec])
    commit = world.repo("partition").write([PutFile(*each) for each in files.items()])
    world.settle(commit)
    (info,) = world.client.inspect_job(commit, "index")
    read = {kind: sum(len(data) for path, data in files.items() if path.startswith(f"/{kind}/")) for kind in KINDS}
    assert info.stats.download_bytes == sum(map(len, files.values())) - read["thumbnails"]
    assert passed_on(world.hashes("index")) == made(world.hashes("partition"))
    assert len(made(files)) == 4

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    given = {"features": "library", **dict.fromkeys(KINDS, "")}
    inputs = {
        name: DatumInput(name, tmp_path / "partition" / (top or name) / "0", f"{top or name}/0", "")
        for name, top in given.items()
    }
    index.start({"ALGORITHM": "ivfflat"})(Datum(inputs, tmp_path / "out"))
    assert world.content("index") == contents(tmp_path / "out")
    assert "/0/codes.bin" in contents(tmp_path / "out")
