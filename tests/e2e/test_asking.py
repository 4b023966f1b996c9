"""Questions to a library as it was: the answers of then, to the byte, without a commit or a job; and the reasons why
some cannot be had."""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.analysis.time_travel import past_library, past_search
from pipelines.client.deployment.deployment import make_repo
from pipelines.client.repository import PutFile
from pipelines.commands.ask.past_query import STEPS
from pipelines.library import queries
from pipelines.specifications import pipeline_specs
from stages.datum.file_cache import FileCache
from tests.e2e.world import MakeWorld, Paint, World, specs, with_environment
from tests.small_archives import zipped

pytestmark = pytest.mark.timeout(300)

FILES = ("neighbors.jsonl", "grid.png", "index.html")
ARGUMENTS = ("mine.png", "folder", "more.zip")


@dataclass(frozen=True)
class Told:
    """A world with a history: the commits by name, and the pictures to ask with in its scratch directory."""

    world: World
    commits: dict[str, str]


@pytest.fixture(scope="module")
def told(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> Told:
    """Pictures come before there is a backbone; then one, queries, a removal, another backbone, and one that takes
    pictures of another size."""
    world, commits = make_world("asking"), {}
    world.deploy()
    commits["bare"] = world.add({f"trip/{n}.png": paint(n) for n in range(8)})
    commits["first"] = world.push(backbones["first"])
    files = world.scratch
    (files / "folder").mkdir()
    (files / "mine.png").write_bytes(paint(3))
    (files / "folder" / "one.png").write_bytes(paint(40))
    (files / "folder" / "two.png").write_bytes(paint(5))
    (files / "more.zip").write_bytes(zipped({"in/three.png": paint(7, 1), "torn.png": b"torn"}))
    world.lookalike("query", *ARGUMENTS)
    asked = world.repo("queries").good()
    assert asked is not None
    commits["asked"] = asked.at
    commits["removed"] = world.remove("trip/3.png")
    world.settle(commits["removed"])
    commits["second"] = world.push(backbones["second"])
    world.settle(commits["second"])
    commits["large"] = world.push(backbones["large"])
    world.end(commits["large"])
    return Told(world, commits)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


Sheets = dict[str, dict[str, bytes]]


def sheets(world: World, at: str) -> Sheets:
    """The files of the sheets that an older commit gives for the pictures, by entry. Changes nothing on the server."""
    return asked(world, at)[0]


def asked(world: World, at: str, *options: str) -> tuple[Sheets, str]:
    """The same, and what the command says."""
    before = world.commits()
    said = world.lookalike("query", *ARGUMENTS, "--at", at, "-o", "past", *options)
    assert world.commits() == before
    found = {}
    for entry in ARGUMENTS:
        (directory,) = (world.scratch / "past").glob(f"{entry}@*")
        found[entry] = {name: (directory / name).read_bytes() for name in FILES}
    shutil.rmtree(world.scratch / "past")
    return found, said


def recorded(world: World, at: str) -> Sheets:
    """The sheets that the pipelines made."""
    return {entry: {name: world.repo("render", at).read(f"/{entry}/{name}") for name in FILES} for entry in ARGUMENTS}


def nearest(files: dict[str, bytes]) -> list[str]:
    return [json.loads(line)["neighbors"][0]["sources"][0] for line in files["neighbors.jsonl"].splitlines()]


def test_the_answer_is_that_of_the_pipelines_to_the_byte(told: Told) -> None:
    at = told.commits["second"]
    assert sheets(told.world, at) == recorded(told.world, at)


def test_a_removed_picture_is_found_again(told: Told) -> None:
    at = told.commits["asked"]
    found = sheets(told.world, at[:12])
    assert found == recorded(told.world, at)
    assert nearest(found["mine.png"]) == ["trip/3.png"]
    assert nearest(recorded(told.world, told.commits["removed"])["mine.png"]) != ["trip/3.png"]


@pytest.mark.only_in_all
def test_an_approximate_search_is_that_of_then(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> None:
    world = make_world("approximate")
    world.deploy(with_environment(each, ALGORITHM="ivfflat") if each.name == "search" else each for each in specs())
    world.add({f"{n}.png": paint(n) for n in range(4)})
    (world.scratch / "mine.png").write_bytes(paint(3))
    commits = [world.push(backbones["first"]), world.query("mine.png", paint(3))]
    world.settle(*commits)
    world.lookalike("query", "mine.png", "--at", commits[-1], "-o", "past")
    (directory,) = (world.scratch / "past").glob("mine.png@*")
    assert {name: (directory / name).read_bytes() for name in FILES} == {
        name: world.repo("render").read(f"/mine.png/{name}") for name in FILES
    }


def test_a_commit_apart_from_the_pipelines_means_the_answers_that_stood_then(told: Told) -> None:
    world = told.world
    head = world.repo("render").good()
    assert head is not None
    assert past_library.answering_commit(world.connection, told.commits["asked"]) == told.commits["asked"]
    make_repo(world.connection, "labels")
    commit = world.repo("labels").write([PutFile("/labels.csv", b"source,label\n")])
    assert past_library.answering_commit(world.connection, commit) == head.at


@pytest.mark.only_in_all
def test_segments_that_do_not_fit_into_the_cache_are_searched_in_turn(told: Told, tmp_path: Path) -> None:
    store = FileCache(tmp_path / "small", most=1)
    arguments = [told.world.scratch / each for each in ARGUMENTS]
    at = told.commits["asked"]
    answered = past_search.ask(told.world.connection, at, queries.find(arguments), tmp_path, STEPS, store=store)
    found = {each.entry: {name: (each.directory / name).read_bytes() for name in FILES} for each in answered.sheets}
    assert found == recorded(told.world, at)
    assert [path for path in (tmp_path / "small").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "stage",
    ["preprocess", *(pytest.param(each, marks=pytest.mark.only_in_all) for each in ("features", "partition", "index"))],
)
def test_another_stage_is_refused_unless_todays_code_may_compute_again(
    told: Told, stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(pipeline_specs.SHIPPED_SPECS, tmp_path / "newer")
    for path in (tmp_path / "newer").glob(f"{stage}*.json"):
        path.write_text(path.read_text().replace(f'STAGE": "{stage}-', f'STAGE": "{stage}-9'))
    monkeypatch.setattr(pipeline_specs, "SHIPPED_SPECS", tmp_path / "newer")
    at = told.commits["asked"]
    refused = told.world.lookalike("query", "mine.png", "--at", at, fails=True)
    assert f"{stage} ran {stage}-" in refused
    assert f"and this code has {stage}-9" in refused
    again = {
        "preprocess": "computes preprocess, features, partition and index of the whole library again",
        "features": "computes features, partition and index of the whole library again",
        "partition": "computes partition and index of the whole library again",
        "index": "computes index of the whole library again",
    }
    assert again[stage] in refused
    found, said = asked(told.world, at, "--with-todays-code")
    assert found == recorded(told.world, at)
    assert re.search(r"computing .*index of 8 pictures again .*; the pipelines took [\d.]+ s of computing for it", said)


def test_a_library_that_could_not_answer_then_is_refused_with_the_reason(told: Told) -> None:
    def refused(commit: str) -> str:
        return told.world.lookalike("query", "mine.png", "--at", told.commits[commit], fails=True)

    assert "the repo models held no backbone, so nothing was compared then" in refused("bare")
    assert "pictures were made 96 pixels, but the backbone large took 128: there were no answers then" in refused(
        "large"
    )
    dropped = told.world.lookalike("query", "mine.png", "--at", "0123456789ab4def0123456789abcdef", fails=True)
    assert "there is no commit 0123456789ab4def0123456789abcdef: it was squashed or deleted" in dropped
    assert "is before the first commit" in told.world.lookalike("query", "mine.png", "--at", "2001-02-03", fails=True)


def test_an_empty_library_is_told(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> None:
    world = make_world("empty")
    world.deploy()
    commit = world.push(backbones["first"])
    world.settle(commit)
    (world.scratch / "mine.png").write_bytes(paint(1))
    assert "the library was empty at commit" in world.lookalike("query", "mine.png", "--at", commit, fails=True)


@pytest.mark.only_in_all
def test_pipelines_deleted_since_answer_with_todays_code(told: Told) -> None:
    at, world = told.commits["asked"], told.world
    before = recorded(world, at)
    for name in ("render", "search", "index", "partition"):
        world.client.delete_pipeline(name)
    refused = world.lookalike("query", "mine.png", "--at", at, fails=True)
    assert "render did not exist, or was deleted since" in refused
    assert asked(world, at, "--with-todays-code")[0] == before
