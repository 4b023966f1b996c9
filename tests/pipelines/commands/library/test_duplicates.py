"""The command for copies, with the pairs of a pipeline that takes the place of neighbours: its table, its files, its
JSON, and its refusals."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.analysis.measurement import copy_groups
from pipelines.client.deployment.deployment import deploy
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import DeleteFile, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.specifications import pipeline_specs
from pipelines.specifications.pipeline_specs import SHIPPED_SPECS
from stages.backbone.backbone_spec import BackboneSpec, WeightsOrigin, format_spec
from stages.files.blocks import RecordBlock
from stages.record.url_records import UrlRecord
from tests.command import Command
from tests.pipelines.tcp_proxy import outlasts
from tests.stages import pairings
from tests.stages.pairings import source
from tests.stages.serving.segments import write_segment

pytestmark = pytest.mark.late_alone

PICTURES = {
    "cat": [
        source("train/cat.jpg", 400, 300, 5000, "2019-08-04T16:30:12", pixels="cat"),
        source("old/cat [1].jpg", 400, 300, 5000, pixels="cat"),
        source("test/cat.jpg", 400, 300, 5000, pixels="cat"),
    ],
    "small": [source("test/small.jpg")],
    "dog": [source("dog.jpg", size=70, pixels="dog"), source("<b>dog</b>.jpg", 41, pixels="dog")],
    "alone": [source("alone/bird.jpg")],
}
NEIGHBOURS = {
    "pipeline": {"name": "neighbours"},
    "input": {"pfs": {"name": "index", "repo": "images", "glob": "/"}},
    "transform": {
        "image": "lookalike-cpu:0.1.0",
        "cmd": ["sh", "-e"],
        "stdin": ['cp -r "$index"/. "${LOCALPACHD_PFS:-/pfs}/out"'],
        "env": {"THRESHOLD": str(pairings.THRESHOLD), "LOOKALIKE_STAGE": "neighbours-6"},
    },
}


@pytest.fixture
def here(as_user: Connection, command: Command) -> Connection:
    """The user's library, with specifications in the command's directory; `images` holds what neighbours writes."""
    specs = command.directory / "specs" / "duplicates"
    specs.mkdir(parents=True)
    (specs.parent / "preprocess.json").write_bytes(
        (SHIPPED_SPECS / "preprocess.json").read_bytes()
    )  # a directory of one's own
    (specs / "neighbours.json").write_text(json.dumps(NEIGHBOURS))
    (specs / "duplicates.json").write_bytes((SHIPPED_SPECS / "duplicates" / "duplicates.json").read_bytes())
    for repo in ("images", "masks", "index"):
        as_user.client.create_repo(repo, project_name=as_user.project)
    as_user.client.create_repo("models", project_name=as_user.project)
    return as_user


@pytest.fixture
def library(here: Connection, tmp_path: Path) -> Connection:
    """The same, with pictures."""
    pairings.write(tmp_path / "pairs", PICTURES, [("cat", "cat", 0), ("cat", "small", 0.25), ("dog", "dog", 0)])
    ids = sorted(map(pairings.id_of, PICTURES))
    by_id = {pairings.id_of(name): sorted(sources) for name, sources in PICTURES.items()}
    write_segment(tmp_path / "0", ids, np.zeros((len(ids), 4)), by_id)
    spec = format_spec(BackboneSpec("small", 96, "avg", 4, 8, "float32", WeightsOrigin("here", "f" * 64), "m" * 64))
    Repository(here, "models").write([PutFile("/backbone.json", spec.encode())])
    Repository(here, "index").write([PutFile("/0/images.parquet", tmp_path / "0" / "images.parquet")])
    Repository(here, "images").write([PutFile("/pairs/0/0.parquet", tmp_path / "pairs")])
    return here


def found(command: Command, *arguments: str) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = json.loads(command.run("duplicates", "--json", *arguments).stdout)["groups"]
    return groups


def kept(command: Command, *arguments: str) -> list[str]:
    return [group["keep"] for group in found(command, *arguments)]


def test_exact_copies_are_listed_and_written(library: Connection, command: Command) -> None:
    said = command.says("duplicates")
    assert "pipeline neighbours: created" in said
    lines = said[said.index("3 exact copies") :].splitlines()
    assert lines[:3] == [
        "3 exact copies in 2 groups in the library: 10.1 kB to free",
        "look at them: results/duplicates/index.html",
        "remove them: lookalike remove --from results/duplicates/remove.txt",
    ]
    assert lines[5].split() == ["1", "3", "10.0", "kB", "train/cat.jpg", "date", "of", "the", "camera"]
    assert lines[6].split() == ["2", "2", "70", "bytes", "<b>dog</b>.jpg", "most", "pixels"]
    assert len(lines) == 7
    output = command.directory / "results" / "duplicates"
    assert (output / "remove.txt").read_text() == "dog.jpg\nold/cat [1].jpg\ntest/cat.jpg\n"
    assert "<h1>Exact copies</h1>" in (output / "index.html").read_text()
    assert not list(output.glob("near*"))
    told = json.loads(command.run("duplicates", "--json", "-o", "elsewhere").stdout)
    assert (told["directory"], told["removable"], told["frees"], told["near"]) == ("elsewhere", 3, 10070, None)
    assert [json.dumps(each) for each in told["groups"]] == [
        json.dumps(json.loads(line)) for line in (output / "groups.jsonl").read_text().splitlines()
    ]
    said = command.says("duplicates", "-n", "1")
    assert "and 1 group more" in said
    assert "created" not in said


def test_near_copies_are_shown_on_request_and_never_listed(library: Connection, command: Command) -> None:
    said = command.says("duplicates", "--near")
    lines = said[said.index("1 near copy") :].splitlines()
    assert lines[:2] == [
        "1 near copy in 1 group in the library: look at each before you remove any",
        "look at them: results/duplicates/near.html",
    ]
    assert lines[4].split() == ["1", "4", "11.0", "kB", "train/cat.jpg", "date", "of", "the", "camera"]
    output = command.directory / "results" / "duplicates"
    assert "test/small.jpg" not in (output / "remove.txt").read_text()
    assert "<h1>Near copies</h1>" in (output / "near.html").read_text()
    (near,) = json.loads(command.run("duplicates", "--near", "--json").stdout)["near"]
    assert [each["path"] for each in copy_groups.removed(near)] == ["old/cat [1].jpg", "test/cat.jpg", "test/small.jpg"]
    command.says("duplicates")
    assert not list(output.glob("near*"))


def test_across_two_folders(library: Connection, command: Command) -> None:
    said = command.says("duplicates", "--across", "./train/", "test", "--near")
    assert "1 exact copy in 1 group in both train and test: 5.0 kB to free" in said
    assert "1 near copy in 1 group in both train and test" in said
    assert (command.directory / "results/duplicates/remove.txt").read_text() == "test/cat.jpg\n"
    assert kept(command, "--across", "test", "train") == []  # the picture in train alone has a date
    assert "no exact copies in both train and alone" in command.says("duplicates", "--across", "train", "alone")
    assert (command.directory / "results/duplicates/remove.txt").read_text() == ""
    failed = command.fails("duplicates", "--across", "tent", "train")
    assert failed == "the library has no pictures in tent"
    for wrong, reason in (
        (("train", "train/"), "pictures in common"),
        (("a", "a/b"), "in common"),
        (("", "a"), "empty"),
    ):
        assert reason in command.fails("duplicates", "--across", *wrong)


def test_what_only_urls_would_keep_is_neither_listed_nor_shown(library: Connection, command: Command) -> None:
    block = RecordBlock((UrlRecord("train/cat.jpg", "https://example.org/cat.jpg", "", "f" * 64, 5000),))
    Repository(library, "images").write([PutFile(f"/{block.name}", block.pieces())])
    said = command.says("duplicates")
    assert "2 exact copies in 2 groups in the library: 5.1 kB to free" in said
    output = command.directory / "results" / "duplicates"
    assert (output / "remove.txt").read_text() == "dog.jpg\nold/cat [1].jpg\n"
    assert "2 files can go, which frees 5.1 kB" in (output / "index.html").read_text()
    assert [each["frees"] for each in found(command)] == [5000, 70]


def test_a_library_without_a_backbone_is_refused(here: Connection, command: Command) -> None:
    assert command.fails("duplicates") == (
        "the library has no backbone, so no pictures are compared: run `lookalike model push efficientnet-lite0`"
    )
    assert not ProjectJobs(here).pipelines()


def test_the_lists_of_another_version_are_refused(library: Connection, command: Command) -> None:
    """Earlier ones list near copies for removal."""
    command.says("duplicates")
    (command.directory / "results" / "duplicates" / "remove.txt").unlink()
    spec = json.loads((SHIPPED_SPECS / "duplicates" / "duplicates.json").read_text())
    spec["transform"]["env"]["LOOKALIKE_STAGE"] = "duplicates-1"
    old = command.directory / "old" / "duplicates.json"
    old.parent.mkdir()
    old.write_text(json.dumps(spec))
    deploy(library, [pipeline_specs.read(old)])
    assert command.fails("duplicates").startswith(
        "duplicates: the pipeline was deployed by an earlier version of lookalike, for duplicates-1, and this code is"
    )
    assert not (command.directory / "results" / "duplicates" / "remove.txt").exists()


def test_without_pairs_there_are_no_copies_and_no_old_list(library: Connection, command: Command) -> None:
    command.says("duplicates", "--near")
    output = command.directory / "results" / "duplicates"
    (output / "page-2.html").write_text("of a larger library")
    (output / "near-2.html").write_text("of a larger library")
    (output / "notes.txt").write_text("the user's own")
    Repository(library, "images").write([DeleteFile("/pairs/")])
    assert command.says("duplicates").endswith("no exact copies in the library\n")
    assert sorted(path.name for path in output.iterdir()) == ["groups.jsonl", "index.html", "notes.txt", "remove.txt"]
    assert (output / "remove.txt").read_text() == ""


def test_the_sheet_of_a_query_of_that_name_stays(library: Connection, command: Command) -> None:
    sheet = command.directory / "results" / "duplicates"
    sheet.mkdir(parents=True)
    for name in ("neighbors.jsonl", "index.html"):
        (sheet / name).write_text("a sheet")
    assert "is the result sheet of a query: name another directory" in command.fails("duplicates")
    assert (sheet / "index.html").read_text() == "a sheet"


def test_the_pipelines_are_deleted_again(library: Connection, command: Command) -> None:
    command.says("duplicates", "--no-wait")
    said = command.says("duplicates", "--off")
    assert said.splitlines()[-2:] == ["pipeline duplicates: deleted", "pipeline neighbours: deleted"]
    assert not ProjectJobs(library).pipelines()
    assert "nothing to do" in command.says("duplicates", "--off")


@pytest.mark.only_in_all
def test_reading_outlasts_a_restart_of_the_server(
    library: Connection, command: Command, own_configuration: Path
) -> None:
    command.says("duplicates")
    outlasts(command, own_configuration, "duplicates")
    outlasts(command, own_configuration, "duplicates", "--across", "train", "test")


def test_jobs_that_a_deployment_stopped_are_not_waited_for(library: Connection, command: Command) -> None:
    command.says("duplicates")
    specs = command.directory / "specs" / "duplicates"
    for name in ("neighbours", "duplicates"):
        spec = json.loads((specs / f"{name}.json").read_text())
        spec["transform"]["env"]["NOTE"] = "another"
        (specs / f"{name}.json").write_text(json.dumps(spec))
    gate = command.directory / "gate"
    held = json.loads((specs / "neighbours.json").read_text())
    held["transform"]["stdin"].insert(0, f"while [ ! -e {gate} ]; do sleep 0.05; done")
    (specs / "neighbours.json").write_text(json.dumps(held))
    deploy(library, [pipeline_specs.read(specs / f"{name}.json") for name in ("neighbours", "duplicates")])
    typed = command.start("duplicates")
    assert typed.stdout is not None
    assert typed.stdout.readline().startswith("writing to ")
    gate.touch()
    said, complained = typed.communicate(timeout=60)
    assert (typed.returncode, complained) == (0, "")
    assert "duplicates: success" in said
    assert "killed" not in said


def test_a_server_without_pipelines_is_left_as_it_is(as_user: Connection, command: Command) -> None:
    for words, reader in (
        (["duplicates"], "neighbours"),
        (["duplicates", "--across", "a", "b"], "neighbours"),
        (["evaluate"], "evaluate"),
        (["evaluate", "--metric", "cosine"], "evaluate"),
    ):
        done = command.run(*words)
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done
        assert f"{reader} reads index, which is not deployed: run `lookalike deploy` first" in done.stderr
        assert "deploying" not in done.stdout
    assert not [each for each in as_user.client.list_repo() if each.repo.project.name == as_user.project]
