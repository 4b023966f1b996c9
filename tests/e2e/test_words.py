"""Words as queries through all pipelines, with a real text tower of random weights: their datums, their answers, and
those of an earlier model."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.client.repository import PutFile
from stages.backbone.backbone_spec import TEXT_FILE
from stages.backbone.text_tower import NO_WORDS, TextTower, read_text_tower
from stages.knn.vector_set import VectorSet
from stages.record.pfs_names import escape_component
from tests.e2e.world import Job, MakeWorld, Paint, World
from tests.stages.text_towers import write_text_tower

pytestmark = pytest.mark.timeout(300)

ENTRY = escape_component("red bicycle in snow.txt")


@dataclass(frozen=True)
class Worded:
    """A world whose model has words: the commits by name, the towers before and after, and the jobs of these."""

    world: World
    commits: dict[str, str]
    towers: list[TextTower]
    jobs: dict[str, dict[str, Job]]


@pytest.fixture(scope="module")
def worded(
    make_world: MakeWorld, backbones: dict[str, Path], paint: Paint, tmp_path_factory: pytest.TempPathFactory
) -> Worded:
    """Pictures and a wordless model, a query in words, a text tower, and then another one."""
    world = make_world("words")
    world.deploy()
    added = [world.add({f"trip/{n}.png": paint(n) for n in range(8)}), world.push(backbones["first"])]
    early = world.query("early.txt", b"a cat")
    jobs, commits, towers = {"early": world.settle(*added, early)}, {"early": early}, []
    for seed, name in enumerate(("first", "second")):
        file = write_text_tower(tmp_path_factory.mktemp(name), 16, seed)
        towers.append(read_text_tower(file))
        commits[name] = world.repo("models").write([PutFile(f"/{TEXT_FILE}", file.read_bytes())])
        jobs[name] = world.settle(commits[name])
        world.lookalike("query", "red bicycle in snow", "--without", "a cat, a dog", "--filter", "trip/")
        head = world.repo("queries").good()
        assert head is not None
        commits[f"{name} asked"] = head.at
    return Worded(world, commits, towers, jobs)


def _lines(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


def test_a_text_tower_recomputes_no_picture_and_every_text(worded: Worded) -> None:
    for name in ("first", "second"):
        jobs = worded.jobs[name]
        assert jobs["features"].counts[0] == jobs["index"].counts[0] == 0
        assert jobs["features-queries"].counts[0] == (1 if name == "first" else 2)


def test_a_text_put_before_there_are_words_says_why_and_is_answered_later(worded: Worded) -> None:
    before = worded.world.repo("render", worded.commits["early"])
    assert NO_WORDS.split("`")[0] in before.read("/early.txt/index.html").decode()
    assert _lines(before.read("/early.txt/neighbors.jsonl")) == []
    (answer,) = _lines(worded.world.repo("render", worded.commits["first"]).read("/early.txt/neighbors.jsonl"))
    assert (answer["text"], answer["sources"]) == ("a cat", ["early.txt"])


def test_words_find_the_nearest_of_all_pictures(worded: Worded) -> None:
    world, tower = worded.world, worded.towers[1]
    (answer,) = _lines(world.repo("render").read(f"/{ENTRY}/neighbors.jsonl"))
    vectors = [content for path, content in world.content("features").items() if path.endswith(".npy")]
    text, cat, dog = tower.embed(["red bicycle in snow", "a cat", "a dog"]).astype(np.float64)
    point = text - (cat + dog) / 4
    asked = VectorSet((point / np.linalg.norm(point)).astype(np.float32)[None])
    library = VectorSet(np.concatenate([np.load(io.BytesIO(each)) for each in vectors]))
    every = np.arange(len(library))
    distances = np.sort(asked.distances(np.zeros_like(every), library, every))
    found = answer["neighbors"]
    np.testing.assert_allclose([each["distance"] for each in found], distances[:3], rtol=1e-6)
    assert [each["likeness"] for each in found] == [None] * 3
    assert (answer["text"], answer["without"], answer["filter"]) == ("red bicycle in snow", ["a cat", "a dog"], "trip/")
    page = world.repo("render").read(f"/{ENTRY}/index.html").decode()
    assert "Nearest pictures for “red bicycle in snow”" in page and "without a cat and a dog" in page


def test_the_same_words_again_cost_nothing(worded: Worded) -> None:
    world = worded.world
    world.lookalike("query", "red bicycle in snow", "--without", "a cat, a dog", "--filter", "trip/")
    done = {name: world.end(world.newest(name))[name] for name in ("preprocess-queries", "features-queries", "search")}
    assert {name: each.counts[0] for name, each in done.items()} == dict.fromkeys(done, 0)


def test_the_words_of_an_earlier_model_are_asked_again(worded: Worded) -> None:
    world, at = worded.world, worded.commits["first asked"]
    before = world.commits()
    given = ("query", "red bicycle in snow", "--without", "a cat, a dog", "--filter", "trip/")
    world.lookalike(*given, "--at", at, "-o", "past")
    (directory,) = (world.scratch / "past").glob("red bicycle*@*")
    then, now = world.repo("render", at), world.repo("render")
    for name in ("neighbors.jsonl", "grid.png", "index.html"):
        assert (directory / name).read_bytes() == then.read(f"/{ENTRY}/{name}") != now.read(f"/{ENTRY}/{name}")
    said = world.lookalike(*given, "--at", worded.commits["early"], fails=True)
    assert NO_WORDS.split("`")[0] in said
    assert world.commits() == before


def test_pictures_and_words_of_one_entry_are_queries_each(worded: Worded, paint: Paint) -> None:
    world = worded.world
    commit = world.query("both", {"a.png": paint(3), "b.txt": "雪 🚲".encode(), "bad.txt": b"\0"})
    world.settle(commit)
    answers = {str(each["sources"][0]): each for each in _lines(world.repo("render").read("/both/neighbors.jsonl"))}
    assert set(answers) == {"both/a.png", "both/b.txt"}
    assert answers["both/a.png"]["neighbors"][0]["likeness"] == "same picture"
    assert answers["both/b.txt"]["neighbors"][0]["likeness"] is None
    assert b"both/bad.txt" in world.repo("render").read("/both/index.html")
