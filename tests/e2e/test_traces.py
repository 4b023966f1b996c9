"""Answers traced back to the files, datums, jobs and commits that they came from, on real pipelines."""

import io
import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from pipelines.analysis.tracing.trace_page import page as trace_page
from pipelines.analysis.tracing.tracer import picture, trace
from pipelines.analysis.tracing.traces import AnswerTrace, PictureOrigin, as_data
from pipelines.client.repository import PutFile
from pipelines.errors import LookalikeError
from pipelines.library import ingest
from pipelines.library.picture_sources import PictureSource
from stages.record import part_names
from tests.e2e.world import MakeWorld, Paint, World, specs
from tests.pipelines.grpc_proxy import passed_on
from tests.small_archives import zipped

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Told:
    """A library, the commits that made it by name, and traces of its answers that were made on the way."""

    world: World
    commits: dict[str, str]
    before: dict[str, Any]

    def trace(self, query: str = "", rank: int = 1, at: str = "", entry: str = "many") -> AnswerTrace:
        return trace(self.world.connection, entry, query, rank, at)


def into_blocks(world: World, pictures: dict[str, bytes]) -> str:
    found = []
    for number, (name, content) in enumerate(pictures.items()):
        path = world.scratch / f"{len(world.commits())}-{number}"
        path.write_bytes(content)
        found.append(PictureSource(name, path, len(content)))
    return ingest.add(world.connection, found, most_single=0).commit


@pytest.fixture(scope="module")
def told(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint) -> Told:
    """A library of every kind of file; its queries differ in one pixel from one of its pictures each."""
    world = make_world("traces")
    # Features come last: nothing but preprocess runs for each of the commits.
    world.client.create_repo("masks")
    world.deploy(each for each in specs() if each.name == "preprocess")
    commits = {
        "blocks": into_blocks(world, {f"holiday/{seed}.png": paint(seed) for seed in range(1, 7)}),
        "blocks again": into_blocks(world, {"holiday/more.png": paint(7), "holiday/6.png": paint(60)}),
        "alone": world.add({"alone ☀.png": paint(20)}),
        "archive": world.add({"pack.zip": zipped({"in/a.png": paint(30), "b.png": paint(31)})}),
        "folder": world.repo("images").write(
            [PutFile("/folder/x.png", paint(40)), PutFile("/folder/y.png", paint(41))]
        ),
        "twin": world.add({"copies/twin.png": paint(20)}),
        "same again": world.add(
            {"alone ☀.png": paint(20), "pack.zip": zipped({"in/a.png": paint(30), "b.png": paint(31)})}
        ),
    }
    world.settle(*commits.values())
    world.deploy()
    commits["model"] = world.push(backbones["first"])
    asked = {"block.png": 1, "newer.png": 6, "alone.png": 20, "archive.png": 30, "folder.png": 40}
    seeds = asked | {"newer.png": 60}
    commits["many"] = world.query("many", {name: paint(seed, 1) for name, seed in seeds.items()})
    world.settle(commits["model"], commits["many"])
    before = {name: as_data(trace(world.connection, "many", name)) for name in asked}
    commits["one"] = world.query("one.png", paint(2))
    commits["later"] = world.add({"later.png": paint(50)})
    world.settle(commits["one"], commits["later"])
    return Told(world, commits, before)


def only(found: AnswerTrace) -> PictureOrigin:
    (origin,) = found.neighbour.origins
    return origin


@pytest.mark.only_in_all
def test_a_picture_in_a_block_is_followed_to_the_commit_that_put_it(told: Told) -> None:
    found = told.trace("block.png")
    origin = only(found)
    assert (origin.name, origin.file.member) == ("holiday/1.png", "holiday/1.png")
    assert origin.file.path.startswith("/%block-")
    assert origin.file.commit == told.commits["blocks"]
    newer = only(told.trace("newer.png"))
    assert (newer.name, newer.file.commit) == ("holiday/6.png", told.commits["blocks again"])
    assert newer.file.path.startswith("/%block-") and newer.file.path != origin.file.path


def test_archives_folders_and_lone_files_are_followed(told: Told) -> None:
    archive, folder = only(told.trace("archive.png")), only(told.trace("folder.png"))
    assert (archive.file.path, archive.file.member) == ("/pack.zip", "in/a.png")
    assert (archive.file.commit, archive.name) == (told.commits["archive"], "pack.zip/in/a.png")
    assert archive.file.commit != told.commits["same again"], "it put the same bytes"
    assert (folder.file.path, folder.file.member) == ("/folder/x.png", "")
    assert folder.file.commit == told.commits["folder"]


def test_a_picture_of_the_index_is_followed_as_in_an_answer(told: Told) -> None:
    answer = told.trace("archive.png", at=told.commits["many"])
    id_ = answer.neighbour.id
    found = picture(told.world.connection, id_, "pack.zip/in/a.png", told.commits["many"])
    assert found.picture == answer.neighbour
    assert (found.index, found.model) == (answer.index, answer.model)
    assert found.checks
    assert all(each.holds for each in found.checks)
    assert not found.gaps
    page = trace_page(found)
    assert "<h1>pack.zip/in/a.png</h1>" in page
    assert told.commits["archive"][:12] in page
    assert "data:image/jpeg;base64," in page
    with pytest.raises(LookalikeError, match=r"has no segment with the picture zzzz"):
        picture(told.world.connection, "zzzz", "pack.zip/in/a.png", told.commits["many"])


def test_a_picture_of_the_library_is_traced_by_name_or_id(told: Told) -> None:
    world, commit = told.world, told.commits["many"]
    said = json.loads(world.lookalike("trace", "--picture", "pack.zip/in/a.png", "--at", commit, "--json"))
    assert said["picture"]["names"] == ["pack.zip/in/a.png"]
    assert said["gaps"] == []
    followed = picture(world.connection, said["picture"]["id"], "pack.zip/in/a.png", said["commit"])
    assert json.loads(json.dumps(as_data(followed))) == said
    by_id = json.loads(world.lookalike("trace", "--picture", said["picture"]["id"][:20], "--at", commit, "--json"))
    assert by_id == said
    lines = world.lookalike("trace", "--picture", "./pack.zip/in/a.png").splitlines()
    assert lines[0] == "pack.zip/in/a.png"
    assert lines[1].startswith(f"picture {said['picture']['id'][:12]}; commit ")
    page = lines[-1].removeprefix("page: ")
    assert "<h1>pack.zip/in/a.png</h1>" in (world.scratch / page).read_text()
    assert "has no picture none.png" in world.lookalike("trace", "--picture", "none.png", fails=True)


def test_every_source_of_a_picture_is_followed(told: Told) -> None:
    alone, twin = told.trace("alone.png").neighbour.origins
    assert (alone.name, twin.name) == ("alone ☀.png", "copies/twin.png")
    assert (alone.file.commit, twin.file.commit) == (told.commits["alone"], told.commits["twin"])
    assert alone.preprocess.path != twin.preprocess.path
    assert alone.features != twin.features


def test_a_vector_is_followed_from_its_part_through_its_bucket_to_its_segment(told: Told) -> None:
    found = told.trace("archive.png")
    origin, part = only(found), part_names.name(part_names.source_name("pack.zip"), "")
    assert origin.features.path == f"/library/{part_names.directory(part)}/{part}.parquet"
    assert origin.partition is not None
    assert origin.partition.path == f"/library/{found.neighbour.id[0]}/{part_names.directory(part)[:2]}.parquet"
    assert found.index.path == f"/{found.neighbour.id[0]}/index.json"
    assert found.query.origins[0].partition is None
    of_library = ["preprocess", "features", "partition", "index"]
    assert [each.pipeline for each in found.steps if each.pipeline in of_library] == of_library


def test_all_checks_hold_and_nothing_is_missing(told: Told) -> None:
    for name in told.before:
        found = told.trace(name)
        assert [each.statement for each in found.checks if not each.holds] == []
        assert len(found.checks) == 9
        assert found.gaps == []
        assert found.query.thumbnail.startswith(b"\xff\xd8")
        assert found.neighbour.thumbnail.startswith(b"\xff\xd8")


def test_each_step_names_the_datum_and_the_job_that_computed_it(told: Told) -> None:
    found = told.trace("block.png")
    assert len(found.steps) == 8
    for step in found.steps:
        info = told.world.client.inspect_datum(step.pipeline, step.job, step.datum)
        assert info.datum.job.id == step.job, step
        assert info.stats.process_time.ToNanoseconds() / 1e9 == pytest.approx(step.process)
        assert (step.state, step.unchanged) == ("processed", True)
        spec = next(each for each in specs() if each.name == step.pipeline)
        assert {**step.environment, "LOOKALIKE_STAGE": step.stage} == spec.document["transform"]["env"]
        assert step.image == spec.document["transform"]["image"]


def test_a_skipped_datum_is_followed_to_the_job_that_processed_it(told: Told) -> None:
    found = told.trace("block.png")
    later = told.commits["later"]
    assert only(found).preprocess.job == told.commits["blocks"]
    assert only(found).preprocess.commit == later
    assert only(found).preprocess.skipped_since
    assert found.query.origins[0].features.job == told.commits["many"]
    assert found.commit == later


def test_an_older_answer_is_told_as_it_was(told: Told) -> None:
    for name, before in told.before.items():
        assert as_data(told.trace(name, at=told.commits["many"])) == before
    with pytest.raises(
        LookalikeError, match=r"no result sheet for one\.png at commit .*; these queries have one: many"
    ):
        told.trace(entry="one.png", at=told.commits["many"])


def test_a_query_that_is_in_the_library_is_its_own_neighbour(told: Told) -> None:
    found = told.trace(entry="one.png")
    assert found.query.id == found.neighbour.id
    assert found.query.origins[0].file.path == "/one.png"
    assert only(found).name == "holiday/2.png"


def test_the_number_of_calls_does_not_follow_the_size_of_the_library(told: Told) -> None:
    made: list[str] = []
    with passed_on(told.world.connection, heard=made.append) as connection:
        trace(connection, "many", "block.png")
    assert len(made) < 100, made
    assert not {"ListDatum", "InspectDatum", "WalkFile"} & set(made)


def test_the_command_shows_a_tree_and_writes_a_page(told: Told) -> None:
    said = told.world.lookalike("trace", "many", "--query", "block.png")
    for word in (
        "holiday/1.png",
        "render-11",
        told.commits["blocks"][:12],
        "9 checks, all true",
        "trace-block.png-1.html",
    ):
        assert word in said
    branch = re.findall(r"[└├]─ (index|partition|features|preprocess|images) ", said)
    assert branch == ["index", "partition", "features", "preprocess", "images"]
    page = (told.world.scratch / "results" / "many" / "trace-block.png-1.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 2
    assert "<script" not in page
    data = json.loads(told.world.lookalike("trace", "many", "--query", "block.png", "--json"))
    assert data == json.loads(json.dumps(as_data(told.trace("block.png"))))


def test_sheets_are_linked_to_the_files_of_their_pictures(told: Told) -> None:
    said = told.world.lookalike("results", "--originals")
    results = told.world.scratch / "results"
    assert "all entries: results/index.html" in said
    entries = re.findall(
        r'<li><a href="([^"]*)"><img src="data:image/jpeg', (results / "index.html").read_text("utf-8")
    )
    assert entries == ["many/index.html", "one.png/index.html"]
    found = {}
    for entry in entries:
        page = results / entry
        for link, name in re.findall(r'<li><bdi><a href="(.*?)">(.*?)</a></bdi></li>', page.read_text("utf-8")):
            found[name] = (page.parent / unquote(link)).read_bytes()
    with zipfile.ZipFile(io.BytesIO(told.world.repo("images").read("/pack.zip"))) as archive:
        assert found["pack.zip/in/a.png"] == archive.read("in/a.png")
    assert found["folder/x.png"] == told.world.repo("images").read("/folder/x.png")
    assert {"holiday/1.png", "alone ☀.png", "copies/twin.png"} <= found.keys()
    assert f"linked {len(found)} pictures of {len(found)}\n" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nobody",), "no result sheet for nobody; these queries have one: many, one.png"),
        (("many", "--query", "nobody.png"), "many has no query nobody.png: it has many/alone.png, many/archive.png"),
        (
            ("one.png", "--rank", "9"),
            "one.png has 3 neighbours, so there is none of rank 9: `lookalike deploy --set K=9`",
        ),
        (("one.png", "--rank", "0"), "ranks begin at 1"),
        (("one.png", "--at", "2001-01-01"), "2001-01-01 is before the first commit"),
        (("one.png", "--at", "master^99"), "there is no commit master^99"),
    ],
)
def test_a_tile_that_does_not_exist(told: Told, arguments: tuple[str, ...], said: str) -> None:
    assert said in told.world.lookalike("trace", *arguments, fails=True)


def test_another_model_and_squashed_commits(told: Told, backbones: dict[str, Path]) -> None:
    """The last test: it changes the library."""
    first = told.trace("block.png")
    second = told.world.push(backbones["second"])
    told.world.settle(second)
    found = told.trace("block.png")
    assert (found.model.file.commit, first.model.file.commit) == (second, told.commits["model"])
    assert found.model.sha256 != first.model.sha256
    assert only(found).features.job == second
    assert only(found).preprocess.job == told.commits["blocks"]
    assert told.trace("block.png", at=told.commits["later"]).model == first.model
    told.world.client.squash_commit(told.commits["blocks again"])
    with pytest.raises(LookalikeError, match="there is no commit .* squashed or deleted"):
        told.trace("block.png", at=told.commits["blocks again"])
    assert only(told.trace("newer.png")).file.commit == told.commits["alone"], "the next one has its content"
    told.world.client.delete_job(told.commits["blocks"], "preprocess")
    gone = told.trace("block.png")
    assert only(gone).file.commit == told.commits["blocks"]
    assert only(gone).preprocess.process == only(found).preprocess.process
    assert (only(gone).preprocess.stage, only(gone).preprocess.version) == ("", None)
    assert gone.gaps == ["preprocess: its job was deleted, as jobs of squashed commits are, and its code is not known"]
    assert "not followed: preprocess" in told.world.lookalike("trace", "many", "--query", "block.png")
