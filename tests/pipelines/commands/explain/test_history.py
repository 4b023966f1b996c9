"""`lookalike history` as people and programs read it."""

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.client import commit_owner
from pipelines.client.commit_history import CommitHistory, _created_by
from pipelines.client.deployment.deployment import deploy
from pipelines.client.repository import DeleteFile, PutFile, Repository, write_set
from pipelines.client.server.connection import Connection
from pipelines.library import ingest, last_change
from pipelines.library.datasets.samples import library_crops
from pipelines.library.picture_sources import PictureSource
from pipelines.specifications import pipeline_specs
from stages.backbone.photographs import open_photograph
from tests.command import Command
from tests.e2e.world import with_environment
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.stand_ins import deploy_specs, shell_spec
from tests.pipelines.tcp_proxy import outlasts

pytestmark = [pytest.mark.timeout(300), pytest.mark.late_alone, pytest.mark.usefixtures("own_cache")]


@pytest.fixture
def crops(tmp_path: Path) -> list[Path]:
    """Pictures, each another one."""
    made = []
    for number, crop in zip(range(8), library_crops(open_photograph("cat"), "cat", 0), strict=False):
        made.append(tmp_path / f"crop-{number}.png")
        crop.save(made[-1])
    return made


def sources(**pictures: Path) -> list[PictureSource]:
    """Pictures of the folder trip."""
    return [PictureSource(f"trip/{name}.png", path, path.stat().st_size) for name, path in pictures.items()]


def answer(query: str, *neighbours: str) -> str:
    """A line of neighbors.jsonl."""
    found = [{"id": each, "distance": 0.5, "sources": [f"{each}.jpg"]} for each in neighbours]
    line = {
        "query": query,
        "sources": [f"{query}.jpg"],
        "k": 3,
        "metric": "euclidean",
        "model": "m",
        "neighbors": found,
    }
    return json.dumps(line) + "\n"


def data(command: Command, *arguments: str) -> Any:
    done = command.run("history", *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout)


def said(command: Command, *arguments: str) -> list[str]:
    """What changes did, without the lines about their commits."""
    return [line.strip() for line in command.says("history", *arguments).splitlines() if line.startswith("  ")]


def test_pictures_are_counted_in_files_and_in_blocks(
    as_user: Connection, preprocessing: Connection, command: Command, crops: list[Path], wait_for_jobs: WaitForJobs
) -> None:
    first = ingest.add(as_user, sources(a=crops[0], b=crops[1], c=crops[2]), most_single=1)  # into a block
    text = command.directory / "notes.txt"
    text.write_text("no picture")
    second = ingest.add(as_user, [*sources(b=crops[3], d=crops[4]), PictureSource("notes.txt", text, 10)])
    third = ingest.remove(as_user, ["trip/a.png", "trip/d.png"])
    wait_for_jobs(first.commit, second.commit, third.commit)
    for _ in range(2):  # the second time, names are not read again
        assert said(command, "images") == [
            "images: removed trip/a.png, trip/d.png",
            "images: added trip/d.png; replaced trip/b.png; rejected notes.txt",
            "images: added trip/a.png, trip/b.png, trip/c.png",
        ]
    newest, middle, oldest = data(command, "images")
    assert [each["id"] for each in (newest, middle, oldest)] == [third.commit, second.commit, first.commit]
    assert middle["pictures"] == {"added": 1, "changed": 1, "removed": 0, "rejected": 1}
    assert middle["author"]
    assert said(command, "trip/a.png") == ["images: removed trip/a.png", "images: added trip/a.png"]
    assert said(command, "trip/b.png", "--limit", "1") == ["images: replaced trip/b.png"]
    assert len(said(command, "trip/")) == 3
    (only,) = data(command, "notes.txt")
    assert only["pictures"] == {"added": [], "changed": [], "removed": [], "rejected": ["notes.txt"]}
    assert command.fails("history", "trip/e.png").startswith(
        "no commit has added, replaced or removed a picture trip/e.png: `lookalike history` lists all changes"
    )


def test_pictures_in_directories_archives_and_queries_are_counted(
    as_user: Connection, preprocessing: Connection, command: Command, crops: list[Path], wait_for_jobs: WaitForJobs
) -> None:
    with zipfile.ZipFile(command.directory / "both.zip", "w") as archive:
        archive.write(crops[2], "in/c.png")
        archive.write(crops[3], "in/d.png")
        archive.writestr("in/e.txt", "no picture")
    images = Repository(as_user, "images")
    first = images.write([PutFile("/dir/a.png", crops[0]), PutFile("/dir/sub/b.png", crops[1])])
    second = images.write([PutFile("/both.zip", command.directory / "both.zip"), DeleteFile("/dir/a.png")])
    third = Repository(as_user, "queries").write(
        [PutFile("/mine/a.png", crops[0]), PutFile("/mine/%names", b"a.png\n")]
    )
    wait_for_jobs(first, second, third)
    assert said(command) == [
        "queries: added mine/a.png",
        "images: added both.zip/in/c.png, both.zip/in/d.png; removed dir/a.png; rejected both.zip/in/e.txt",
        "images: added dir/a.png, dir/sub/b.png",
        "pipelines created: preprocess, preprocess-queries",
    ]
    assert len(said(command, "both.zip/in/c.png")) == len(said(command, "mine")) == 1
    assert len(said(command, "dir/a.png")) == 2


def test_a_picture_that_moves_into_a_block_is_not_a_change(
    as_user: Connection, preprocessing: Connection, command: Command, crops: list[Path], wait_for_jobs: WaitForJobs
) -> None:
    first = ingest.add(as_user, sources(a=crops[0]))
    second = ingest.add(as_user, sources(a=crops[0], b=crops[1]), most_single=1)
    wait_for_jobs(first.commit, second.commit)
    assert said(command, "images") == ["images: added trip/b.png", "images: added trip/a.png"]


def test_answers_are_counted_that_a_change_made_different(
    as_user: Connection, sheets: Connection, command: Command, wait_for_jobs: WaitForJobs
) -> None:
    repo = Repository(as_user, "queries")
    first = repo.write([PutFile("/a", (answer("1", "x", "y") + answer("2", "x")).encode())], description="one")
    second = repo.write(
        [PutFile("/a", (answer("1", "y", "x") + answer("3", "x")).encode()), PutFile("/b", answer("1").encode())]
    )
    third = repo.write([DeleteFile("/b")])
    wait_for_jobs(first, second, third)
    found = data(command, "queries")
    assert [each["answers"] for each in found] == [
        {"changed": 0, "new": 0, "gone": 1},
        {"changed": 1, "new": 2, "gone": 1},
        {"changed": 0, "new": 2, "gone": 0},
    ]
    assert said(command, "queries")[-2:] == ["queries: 1 file changed: /a", "answers: 2 new"]
    assert {each["answers"] for each in data(command, "queries", "--no-answers")} == {None}
    assert found[-1]["description"] == "one"


def test_answers_that_are_missing_have_a_reason(
    as_user: Connection, command: Command, wait_for_jobs: WaitForJobs
) -> None:
    deploy_specs(as_user, shell_spec("render", "queries", "false", datum_tries=1))
    wait_for_jobs(Repository(as_user, "queries").write([PutFile("/a", b"1")]))
    assert said(command, "queries")[-1] == "answers: missing, since a job failed"
    (found,) = data(command, "queries")
    assert (found["answers"], found["state"]) == (None, "failed")
    assert "since a job failed" in command.fails("diff", "master", "master")


def test_a_deployment_says_which_parameters_it_changed(
    as_user: Connection, preprocessing: Connection, command: Command, wait_for_jobs: WaitForJobs
) -> None:
    specs = [spec for spec in pipeline_specs.load() if spec.name.startswith("preprocess")]
    assert said(command) == ["pipelines created: preprocess, preprocess-queries"]
    wait_for_jobs(Repository(as_user, "images").write([PutFile("/x", b"no picture")]))
    others = [with_environment(each, IMAGE_SIZE="96", LOOKALIKE_STAGE="preprocess-99") for each in specs]
    deploy(as_user, others)
    wait_for_jobs(Repository(as_user, "images").write([PutFile("/y", b"no picture")]))
    deploy(as_user, others, again=["preprocess"])
    assert said(command, "pipelines") == [
        "computed again: preprocess",
        "IMAGE_SIZE: 224 → 96 in preprocess, preprocess-queries",
        f"LOOKALIKE_STAGE: {specs[0].document['transform']['env']['LOOKALIKE_STAGE']} → preprocess-99 in preprocess, "
        "preprocess-queries",
        "pipelines created: preprocess, preprocess-queries",
    ]
    newest, *_ = data(command)
    assert (newest["repo"], newest["reprocessed"], newest["settings"]) == ("pipelines", ["preprocess"], [])
    assert (newest["author"], newest["description"]) == (commit_owner.current_process().user, "")
    deploy(replace(as_user, doing="deploy --set: it"), specs)
    newest, *_ = data(command, "pipelines")
    assert (newest["author"], newest["description"]) == (commit_owner.current_process().user, "deploy --set: it")


def test_labels_and_commits_of_others_are_listed(as_user: Connection, command: Command) -> None:
    assert command.says("history") == "no changes yet: add pictures with `lookalike add`\n"
    as_user.client.create_repo("labels", project_name=as_user.project)
    Repository(as_user, "labels").write([PutFile("/stl10.csv", b"source,label\n")])
    with as_user.client.commit("labels", "master", project_name=as_user.project) as _:
        open_, older = command.says("history").splitlines()[1::2]
        assert open_ == "  labels: open, nothing in it yet"
    assert older == "  labels: 1 file changed: /stl10.csv"
    assert "by an unknown author" in command.says("history")


def test_what_was_put_together_is_one_change(as_user: Connection, command: Command) -> None:
    for repo in ("images", "labels"):
        as_user.client.create_repo(repo, project_name=as_user.project)
    made = write_set(as_user, {"images": [PutFile("/a.png", b"1")], "labels": [PutFile("/mine.csv", b"")]})
    (change,) = data(command)
    assert (change["id"], change["repo"], change["files"]) == (made, "images", ["/a.png"])
    assert [(each["repo"], each["files"]) for each in change["beside"]] == [("labels", ["/mine.csv"])]
    assert said(command) == ["images: 1 file changed: /a.png", "labels: 1 file changed: /mine.csv"]
    assert [each["id"] for each in data(command, "labels")] == [made]

    description = f"add a (was {'a' * 12}4{'a' * 19} of 2026-11-01T00:00:00+00:00)"  # an import makes one after another
    ids = [
        Repository(as_user, repo).write([PutFile(f"/new {repo}", b"1")], description=description)
        for repo in ("images", "labels")
    ]
    imported, first = data(command)
    assert (imported["ids"], imported["repo"], first["ids"]) == (ids, "images", [made])
    taken_back = last_change.take_back(as_user, last_change.read(as_user))
    assert data(command)[0]["ids"] == [taken_back]
    assert not Repository(as_user, "images").exists("/new images")
    assert not Repository(as_user, "labels").exists("/new labels")


def test_the_time_and_author_of_an_imported_commit_are_those_of_the_original(
    as_user: Connection, command: Command
) -> None:
    as_user.client.create_repo("labels", project_name=as_user.project)
    owner = "written with lookalike by anna@there, process 1/2 of - add cats/"
    described = f"{owner} (was {'0' * 12}4{'1' * 19} of 2024-02-03T04:05:06+00:00)"
    Repository(as_user, "labels").write([PutFile("/a.csv", b"")], description=described)
    (found,) = data(command)
    assert (found["author"], found["description"]) == ("anna@there", "add cats/")
    assert found["started"] == "2024-02-03T04:05:06+00:00"


def test_the_author_that_newer_servers_know_is_read() -> None:
    info = pfs_pb2.CommitInfo()
    info.MergeFromString(b"\x82\x01\x0aanna@there")  # the field 16 of Pachyderm 2.10
    assert _created_by(info) == "anna@there"
    assert _created_by(pfs_pb2.CommitInfo(description="x")) == ""


def test_files_that_differ_are_paired(as_user: Connection) -> None:
    as_user.client.create_repo("labels", project_name=as_user.project)
    repo = Repository(as_user, "labels")
    old = repo.write([PutFile("/a", b"1"), PutFile("/b", b"1"), PutFile("/d/c", b"1")])
    new = repo.write([PutFile("/a", b"22"), DeleteFile("/b"), PutFile("/e/f", b"1")])
    found = {
        each.path: (each.old and each.old.size, each.new and each.new.size)
        for each in CommitHistory(as_user).pairs("labels", new)
    }
    assert found == {"/a": (1, 2), "/b": (1, None), "/e/f": (None, 1)}
    assert {each.path for each in CommitHistory(as_user).pairs("labels", old, new)} == {"/a", "/b", "/e/f"}
    assert [each.path for each in CommitHistory(as_user).pairs("labels", old, "")] == ["/a", "/b", "/d/c"]


def test_reading_outlasts_a_restart_of_the_server(
    as_user: Connection, sheets: Connection, command: Command, wait_for_jobs: WaitForJobs, own_configuration: Path
) -> None:
    repo = Repository(as_user, "queries")
    wait_for_jobs(repo.write([PutFile("/a", answer("1", "x", "y").encode())]))
    wait_for_jobs(repo.write([PutFile("/a", answer("1", "y", "x").encode())]))
    for words in (("history",), ("history", "queries"), ("diff", "master^"), ("status", "--graph")):
        outlasts(command, own_configuration, *words)
    outlasts(command, own_configuration, "restore", "--query", "a", "--at", "master")


def test_commands_of_two_people_are_two_deployments(
    as_user: Connection, preprocessing: Connection, command: Command
) -> None:
    specs = [spec for spec in pipeline_specs.load() if spec.name.startswith("preprocess")]
    deploy(replace(as_user, doing="deploy --set FIT=crop"), [with_environment(specs[0], FIT="crop")])
    deploy(replace(as_user, doing="model push"), [with_environment(specs[1], FIT="crop")])
    assert [each["description"] for each in data(command, "pipelines")][:2] == ["model push", "deploy --set FIT=crop"]
