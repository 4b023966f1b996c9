"""One change after the other on one server: the datums computed and skipped for each, and the output."""

import io
import itertools
import json
import platform
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stages.backbone.backbone_spec import TEXT_FILE
from stages.decode.picture_normaliser import picture_id
from stages.record import entry_paths
from stages.record.framing import PictureSquare
from tests.e2e.world import Job, MakeWorld, Paint

pytestmark = pytest.mark.timeout(600)

BESIDE = "red-554.png"
"""An entry in the bucket of red.png."""

PER_QUERY = ("preprocess-queries", "features-queries")
PER_PICTURE = ("preprocess", "features", "partition", "index")
BELOW = ("search", "render")


@dataclass(frozen=True)
class Step:
    """The effect of a change: the jobs by pipeline, their datums by state, and the hashes of the outputs after it."""

    jobs: dict[str, Job]
    datums: dict[str, dict[str, int]]
    trees: dict[str, dict[str, bytes]]

    @property
    def processed(self) -> dict[str, int]:
        """The datums processed by each pipeline that had a job."""
        return {name: job.processed for name, job in self.jobs.items()}


@dataclass(frozen=True)
class Story:
    """The steps by name, the files of the pipelines after the step "twin", and the ids of all commits."""

    steps: dict[str, Step]
    files: dict[str, dict[str, bytes]]
    commits: set[str]
    places: tuple[Path, ...]


def segments_of(step: Step) -> int:
    """The number of segments of the index after a step."""
    return sum(path.endswith("/index.json") for path in step.trees["index"])


def id_of(picture: bytes) -> str:
    """The id of a picture file of 96 × 96 pixels, which preprocess does not scale."""
    return picture_id(PictureSquare(np.asarray(Image.open(io.BytesIO(picture))), (96, 96)))


def variants(paint: Paint, seed: int, segment: str) -> Iterator[bytes]:
    """Pictures that differ from the seed's in one pixel and are in one segment."""
    return (each for number in itertools.count(1) if id_of(each := paint(seed, number))[0] == segment)


@pytest.fixture(scope="module")
def story(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> Story:
    """Runs all steps once."""
    world = make_world("increments")
    world.deploy()
    red, blue, green = paint(1), {"b.png": paint(2), "c d.png": paint(3)}, paint(4)
    segment = id_of(red)[0]
    # Three near-duplicates of each query in that segment, so that nothing else in it is among the nearest.
    library = {
        f"near/{seed}-{number}.png": picture
        for seed in (1, 2, 3)
        for number, picture in enumerate(itertools.islice(variants(paint, seed, segment), 3))
    }
    library |= {f"{seed}.png": paint(seed) for seed in range(10, 20)}
    world.add(library)
    world.query("red.png", red)
    world.query("blue", blue)
    steps: dict[str, Step] = {}

    def step(name: str, *commits: str) -> None:
        jobs = world.settle(*commits)
        steps[name] = Step(jobs, {each: world.datums(job) for each, job in jobs.items()}, world.trees())

    step("built", world.push(backbones["first"]))
    step("far", world.add({"far.png": next(variants(paint, 5, segment))}))
    step("near", world.add({"red itself.png": red}))
    step("asked", world.query("green.png", green))
    step("twin", world.add({"copies/red again.png": red}))
    files = {repo: world.content(repo) for repo in steps["twin"].trees}
    step("forgotten", world.forget("green.png"))
    step("joined", world.query(BESIDE, paint(6)))
    step("left", world.forget(BESIDE))
    step("removed", world.remove("far.png", "red itself.png", "copies/red again.png"))
    for name in ("words", "other words"):
        step(name, world.push(backbones[name]))
    assert world.repo("models").exists(f"/{TEXT_FILE}")
    step("second model", world.push(backbones["second"]))
    assert not world.repo("models").exists(f"/{TEXT_FILE}"), "the text tower of the model before stayed"
    return Story(steps, files, world.commits(), (world.scratch, world.root))


def test_a_picture_that_changes_no_answer_is_one_datum_per_stage_and_no_sheet(story: Story) -> None:
    step, before = story.steps["far"], story.steps["built"].datums
    assert step.processed == {"preprocess": 1, "features": 1, "partition": 1, "index": 1, "search": 2, "render": 0}
    assert step.jobs["preprocess"].counts == (1, 19, 0)
    assert step.jobs["search"].skipped == before["search"]["success"] - 2
    assert step.datums["render"] == {"skipped": 2}


def test_a_picture_that_changes_an_answer_renders_that_entry_alone(story: Story) -> None:
    step = story.steps["near"]
    assert step.processed == {"preprocess": 1, "features": 1, "partition": 1, "index": 1, "search": 2, "render": 1}
    assert step.datums["render"] == {"success": 1, "skipped": 1}
    changed = {path for path, hash in step.trees["render"].items() if story.steps["far"].trees["render"][path] != hash}
    assert {path.strip("/").partition("/")[0] for path in changed} == {"", "red.png"}


@pytest.mark.parametrize("name", ["words", "other words"])
def test_a_text_tower_recomputes_no_picture_and_no_answer(story: Story, name: str) -> None:
    step, before = story.steps[name], story.steps["removed"]
    assert step.processed == {
        "features": 0,
        "features-queries": 2,
        "partition": 0,
        "index": 0,
        "search": 0,
        "render": 0,
    }
    assert step.datums["features"] == {"skipped": sum(before.datums["features"].values())}
    assert step.trees == before.trees


def test_list_datum_shows_what_was_skipped(story: Story) -> None:
    for step in story.steps.values():
        for name, job in step.jobs.items():
            counted = {"success": job.processed, "skipped": job.skipped}
            assert step.datums[name] == {state: count for state, count in counted.items() if count}


def test_a_query_touches_neither_the_library_nor_other_entries(story: Story) -> None:
    step, before = story.steps["asked"], story.steps["near"]
    segments = segments_of(before)
    assert {name: job.counts for name, job in step.jobs.items()} == {
        "preprocess-queries": (1, 2, 0),
        "features-queries": (1, 2, 0),
        "search": (segments, 2 * segments, 0),
        "render": (1, 2, 0),
    }
    assert all(step.trees[name] == before.trees[name] for name in PER_PICTURE)
    for name in (*PER_QUERY, *BELOW):
        old = {path: hash for path, hash in before.trees[name].items() if path not in ("/", "/queries/")}
        assert old.items() <= step.trees[name].items()


def test_forgetting_a_query_computes_nothing(story: Story) -> None:
    step = story.steps["forgotten"]
    assert step.processed == dict.fromkeys((*PER_QUERY, *BELOW), 0)
    assert step.trees["render"].keys() == story.steps["near"].trees["render"].keys()


def test_datums_of_search_are_the_buckets_in_use_and_the_segments(story: Story) -> None:
    assert entry_paths.bucket(BESIDE) == entry_paths.bucket("red.png")
    for name, entries in {"near": ("red.png", "blue"), "joined": ("red.png", "blue", BESIDE)}.items():
        step = story.steps[name]
        assert {path.split("/")[1] for path in step.trees["search"]} == {"", *entries}
        buckets = {path.split("/")[2] for path in step.trees["features-queries"] if path.startswith("/queries/")} - {""}
        assert buckets == set(map(entry_paths.bucket, entries))
        assert sum(step.datums["search"].values()) == len(buckets) * segments_of(step)


def test_an_entry_is_searched_with_its_bucket_which_changes_no_other_answer(story: Story) -> None:
    step, before, after = (story.steps[name] for name in ("joined", "forgotten", "left"))
    segments = segments_of(before)
    assert {name: job.counts for name, job in step.jobs.items()} == {
        "preprocess-queries": (1, 2, 0),
        "features-queries": (1, 2, 0),
        "search": (segments, segments, 0),
        "render": (1, 2, 0),
    }
    for name in BELOW:
        old = {path: hash for path, hash in before.trees[name].items() if path != "/"}
        assert old.items() <= step.trees[name].items()
    assert after.processed == {"preprocess-queries": 0, "features-queries": 0, "search": segments, "render": 0}
    assert after.trees == before.trees


def test_removing_added_pictures_gives_the_same_bytes_as_before(story: Story) -> None:
    step = story.steps["removed"]
    assert step.trees == story.steps["built"].trees
    assert step.jobs.keys() == {*PER_PICTURE, *BELOW}
    assert step.jobs["preprocess"].counts == (0, 19, 0)


def test_another_backbone_recomputes_features_and_everything_below(story: Story) -> None:
    built, step = story.steps["built"], story.steps["second model"]
    assert step.jobs.keys() == {"features", "features-queries", "partition", "index", *BELOW}
    assert all(job.skipped == 0 for job in step.jobs.values())
    assert step.processed == {name: built.jobs[name].processed for name in step.jobs}
    for name in step.jobs:
        assert step.trees[name].keys() == built.trees[name].keys()
        assert step.trees[name]["/"] != built.trees[name]["/"]
    assert all(step.trees[name] == built.trees[name] for name in ("preprocess", "preprocess-queries"))


def test_a_picture_of_the_library_finds_itself_first(story: Story) -> None:
    (answer,) = map(json.loads, story.files["render"]["/red.png/neighbors.jsonl"].splitlines())
    first, *others = answer["neighbors"]
    assert (first["id"], first["distance"]) == (answer["query"], 0)
    assert all(each["distance"] > 0 for each in others)


def test_two_copies_are_one_neighbour_with_both_names(story: Story) -> None:
    (answer,) = map(json.loads, story.files["render"]["/red.png/neighbors.jsonl"].splitlines())
    assert len({each["id"] for each in answer["neighbors"]}) == 3
    assert answer["neighbors"][0]["sources"] == ["copies/red again.png", "red itself.png"]
    page = story.files["render"]["/red.png/index.html"].decode()
    assert "red itself.png" in page
    assert "copies/red again.png" in page


def test_no_output_depends_on_its_place_or_time(story: Story) -> None:
    words = {*story.commits, *map(str, story.places), time.strftime("%Y-%m-%d"), time.strftime("%d %b %Y")}
    everywhere = re.compile("|".join(map(re.escape, words)).encode())
    # The machine's name may be so short that pixels or their base64 contain it by chance.
    machine = re.compile(rf"\b{re.escape(platform.node())}\b".encode())
    found = {}
    for repo, files in story.files.items():
        for path, data in files.items():
            text = re.sub(rb"data:[^\"]*", b"", data) if path.endswith(("html", "json", "jsonl")) else b""
            if match := everywhere.search(data + path.encode()) or machine.search(text + path.encode()):
                found[f"{repo}:{path}"] = match[0]
    assert not found
