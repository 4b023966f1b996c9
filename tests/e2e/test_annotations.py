"""Tables and labels of people with all real pipelines: the datums that each change computes, and equal bytes."""

from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.analysis.measurement import optional_deployment
from pipelines.client.repository import PutFile
from stages.files.tables.annotation_table import PATH, read_annotations, write_annotations
from stages.record.attribute_schema import DIRECTORY, SCHEMA, format_schema
from tests.e2e.world import Job, MakeWorld, Paint, World

pytestmark = pytest.mark.timeout(600)

LABELLED = [f"{seed}/{number}.png" for seed in range(3) for number in range(4)]


def put_table(world: World, **owners: str) -> str:
    """States the owner of pictures; returns the commit."""
    file = world.scratch / "owners.parquet"
    write_annotations(pa.table({PATH: [*owners], "owner": [*owners.values()]}), file)
    schema = PutFile(f"/{SCHEMA}", format_schema({"owner": "text"}))
    return world.repo("attributes").write([schema, PutFile(f"/{DIRECTORY}/owners.parquet", file)])


def put_labels(world: World, names: list[str]) -> str:
    rows = "".join(f"{name},{name.split('/')[0]}\n" for name in names)
    return world.repo("labels").write([PutFile("/mine.csv", f"source,label\n{rows}".encode())])


def counts(jobs: dict[str, Job]) -> dict[str, int]:
    return {name: job.processed for name, job in jobs.items() if job.processed}


def settled(world: World, *names: str) -> dict[str, Job]:
    return world.settle(*(world.newest(each) for each in names))


@pytest.fixture(scope="module")
def world(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> World:
    """A library in several segments, with a query, and everything deployed that follows tables and labels."""
    world = make_world("annotated")
    world.deploy()
    world.add({name: paint(int(name[0]), int(name[2])) for name in LABELLED} | {"loose.png": paint(9)})
    world.query("red.png", paint(1, 70))
    world.settle(world.push(backbones["first"]))
    for group in ("annotations", "duplicates"):
        optional_deployment.deploy(world.connection, group)
    settled(world, "annotations", "index", "duplicates")
    return world


def segment_of(world: World, name: str) -> str:
    """The segment of a picture that has annotations."""
    for path in world.repo("index").list("/"):
        table = read_annotations(pa.BufferReader(world.repo("index").read(f"{path}annotations.parquet")))
        if name in table[PATH].to_pylist():
            return path.strip("/")
    raise AssertionError(name)


def test_a_table_computes_the_segments_that_it_changes_and_nothing_before_them(world: World) -> None:
    segments = len([*world.repo("index").list("/")])
    jobs = world.settle(put_table(world, **{"0/0.png": "me"}))
    assert counts(jobs) == {"annotations": segments, "index": 1, "search": 1}
    assert (jobs["index"].skipped, jobs["search"].skipped) == (segments - 1, segments - 1)
    assert jobs.keys().isdisjoint({"preprocess", "features", "partition"})
    before = world.hashes("index")
    jobs = world.settle(put_table(world, **{"0/0.png": "you"}))
    assert counts(jobs) == {"annotations": segments, "index": 1, "search": 1}
    changed = {path for path, found in world.hashes("index").items() if found != before[path]}
    home = segment_of(world, "0/0.png")
    assert changed == {"/", f"/{home}/", f"/{home}/annotations.parquet"}
    assert counts(world.settle(put_table(world, **{"0/0.png": "you", "absent.png": "me"}))) == {"annotations": segments}
    assert counts(world.settle(world.add({"copy/of 0.png": world.repo("images").read("/0%2F0.png")})))["index"] == 1


def test_one_more_label_computes_its_segment(world: World) -> None:
    optional_deployment.deploy(world.connection, "evaluate")
    optional_deployment.deploy(world.connection, "classify")
    world.settle(put_labels(world, LABELLED))
    settled(world, "labelled", "select", "evaluate")
    segments = len([*world.repo("index").list("/")])
    jobs = world.settle(put_labels(world, [*LABELLED, "loose.png"]))
    assert counts(jobs) == {
        "annotations": segments,
        "index": 1,
        "search": 1,
        "labelled": 1,
        "train": 1,
        "select": 1,
        "evaluate": 1,
    }
    assert jobs["labelled"].skipped == segments - 1


def test_pictures_with_their_labels_are_evaluated_and_trained_on_once(world: World, paint: Paint) -> None:
    """One commit set, in which every pipeline has one job; and another one takes both back."""
    for group in ("evaluate", "classify"):
        optional_deployment.deploy(world.connection, group)
    world.settle(put_labels(world, LABELLED))
    before, hashes = world.commits(), {repo: world.hashes(repo) for repo in ("images", "labels")}
    folder = world.scratch / "more" / "blue"
    folder.mkdir(parents=True)
    (folder / "new.png").write_bytes(paint(5))
    world.lookalike("classify", "add", "more")
    (made,) = world.commits() - before
    assert {world.newest(each) for each in ("evaluate", "select", "labelled", "render")} == {made}
    jobs = world.settle(made)
    assert {name: counts(jobs)[name] for name in ("preprocess", "labelled", "train", "select", "evaluate")} == {
        "preprocess": 1,
        "labelled": 1,
        "train": 1,
        "select": 1,
        "evaluate": 1,
    }
    assert world.repo("images").exists("/more%2Fblue%2Fnew.png")
    world.lookalike("undo", "--yes")
    assert {repo: world.hashes(repo) for repo in hashes} == hashes
    assert len(world.commits() - before) == 2
