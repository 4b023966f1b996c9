"""The nearest pictures on the terminal and as JSON, their number, and variables set on the command line."""

import csv
import json
import zipfile
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.client.commit_writer import CommitWriter
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.library.datasets.samples import library_crops
from stages.backbone.photographs import open_photograph
from stages.decode.stl10 import RECORD
from tests.command import Command

pytestmark = pytest.mark.late_alone


def answer(*sources: str) -> dict[str, Any]:
    """A line of neighbors.jsonl, which the `render` of `sheets` takes from the query."""
    near = [{"id": f"{n}" * 64, "distance": n / 8, "sources": [f"trip/{n}.jpg"]} for n in range(3)]
    return {"k": 3, "metric": "euclidean", "model": "m", "neighbors": near, "query": "9" * 64, "sources": [*sources]}


@pytest.fixture
def asked(as_user: Connection, sheets: Connection, command: Command) -> Command:
    """The command, with two files to search for, which are answers: one of one query and one of seven. They look like
    files of records, which are not decoded before they are put."""
    for name, lines in (("mine.bin", [answer("mine.bin")]), ("more.bin", [answer(f"more.bin/{n}") for n in range(7)])):
        (command.directory / name).write_text("\n".join(map(json.dumps, lines)).ljust(RECORD))
    return command


def test_a_query_lists_the_nearest_pictures(asked: Command) -> None:
    said = asked.says("query", "mine.bin").splitlines()
    sheet = said.index("mine.bin: results/mine.bin/index.html, results/mine.bin/grid.png")
    assert said[sheet + 1 :] == ["          0  trip/0.jpg", "     0.1250  trip/1.jpg", "     0.2500  trip/2.jpg"]
    assert asked.says("results", "-k", "1").splitlines() == [said[sheet], said[sheet + 1]]
    assert asked.says("results").splitlines() == [said[sheet], "all entries: results/index.html"]


def test_of_a_large_query_the_first_ones_are_listed(asked: Command) -> None:
    said = asked.says("query", "more.bin", "-k", "1").splitlines()
    start = said.index("more.bin: results/more.bin/index.html, results/more.bin/grid.png")
    assert len(said[start + 1 :]) == 11
    assert said[-1] == "  and 2 queries more: see the sheet"


def test_more_than_are_kept_are_refused_with_the_way_to_get_them(asked: Command, as_user: Connection) -> None:
    asked.says("query", "mine.bin")
    refused = asked.fails("results", "-k", "4")
    assert refused.startswith("K is 3: only the 3 nearest of each query are kept, not 4. `lookalike deploy --set K=4`")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--metric", "cosine"],
            "metric cannot be asked of the pipelines, which know filter, k, max_distance, text, where, without. A",
        ),
        (["--box", "0,0,1,0.5", "--combine", "all"], "box and combine cannot be asked of the pipelines"),
        (["--exact", "false", "--at", "master"], "exact cannot be asked of the pipelines"),
        (["--filter", "{a"], "the filter has a { without a }"),
        (["--where", "camra = 'x'"], "there is no column camra: is it camera?"),
        (["--where", "now() > taken"], "the filter cannot use now()"),
        (
            ["--max-distance", "-1"],
            "max_distance: input should be greater than or equal to 0; see `lookalike query -h`",
        ),
        (["--box", "left"], "box: input should be four numbers, such as 0.1,0.2,0.6,0.9"),
        (["--combine", "some"], "combine: input should be 'any' or 'all'"),
    ],
)
def test_what_the_pipelines_cannot_answer_is_refused_before_anything_is_put(
    options: list[str], words: str, asked: Command, as_user: Connection
) -> None:
    before = CommitWriter(as_user, "queries").newest()
    assert asked.fails("query", "mine.bin", *options).startswith(words)
    assert CommitWriter(as_user, "queries").newest() == before


def test_options_of_a_question_to_the_past_that_mean_nothing_are_refused(asked: Command) -> None:
    assert asked.run("query", "mine.bin", "--with-todays-code").returncode == 2
    assert asked.run("query", "mine.bin", "--at", "master", "--no-wait").returncode == 2
    refused = asked.fails("query", "mine.bin", "--at", "2001-01-01")
    assert refused.startswith(("2001-01-01 is before the first commit", "there are no commits yet"))


def test_a_library_of_other_pipelines_is_refused_with_the_reason(asked: Command) -> None:
    asked.says("query", "mine.bin")
    refused = asked.fails("query", "mine.bin", "--at", "master")
    assert "preprocess did not exist, or was deleted since; " in refused
    assert "render ran a stage without a version, and this code has render-" in refused
    assert "--with-todays-code computes preprocess, features, partition and index of the whole library again" in refused


def test_answers_as_json(asked: Command) -> None:
    done = asked.run("query", "-v", "mine.bin", "-k", "2", "--json")
    assert done.returncode == 0
    assert "render: success" in done.stderr
    told = json.loads(done.stdout)
    assert [*told] == ["commit", "put", "skipped", "unreadable", "sheets"]
    assert (told["put"], told["skipped"], told["unreadable"]) == (1, [], {})
    (sheet,) = told["sheets"]
    assert [*sheet] == ["entry", "directory", "notes", "queries"]
    assert (sheet["entry"], sheet["directory"], sheet["notes"]) == ("mine.bin", "results/mine.bin", [])
    assert sheet["queries"] == [{**answer("mine.bin"), "neighbors": answer()["neighbors"][:2]}]
    assert json.loads(asked.says("results", "-k", "2", "--json")) == [sheet]
    assert json.loads(asked.run("query", "mine.bin", "--no-wait", "--json").stdout)["sheets"] == []


def test_answers_as_tables(asked: Command) -> None:
    done = asked.run("query", "mine.bin", "-k", "2", "--csv", "-", "--parquet", "found.parquet")
    assert done.returncode == 0
    assert "mine.bin: results/mine.bin/index.html" in done.stderr
    near = [(each, source) for each in answer()["neighbors"][:2] for source in each["sources"]]
    lines = list(csv.DictReader(done.stdout.splitlines()))
    assert [(each["query"], float(each["distance"]), each["path"], each["id"]) for each in lines] == [
        ("mine.bin", each["distance"], source, each["id"]) for each, source in near
    ]
    table = pq.read_table(asked.directory / "found.parquet")
    assert table.column_names == list(lines[0]) and table["path"].to_pylist() == [source for _, source in near]
    for wrong in (["--csv", "-", "--json"], ["--csv", "a", "--no-wait"], ["--parquet", "nowhere/a"]):
        assert asked.run("query", "mine.bin", *wrong).returncode == 2
    assert "cannot write results: is a directory" in asked.fails("query", "mine.bin", "--csv", "results")


def test_what_was_put_refused_and_removed_as_json(
    as_user: Connection, preprocessing: Connection, command: Command
) -> None:
    next(library_crops(open_photograph("cat"), "cat", 0)).save(command.directory / "cat.png")
    with zipfile.ZipFile(command.directory / "more.zip", "w") as archive:
        archive.write(command.directory / "cat.png", "a.png")
        archive.writestr("torn.png", b"no picture")
    (command.directory / "folder").mkdir()
    (command.directory / "folder" / "empty.jpg").touch()
    done = command.run("add", "cat.png", "more.zip", "folder", "--json")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert [*told] == ["commit", "put", "skipped", "replaced", "unreadable", "rejected"]
    assert (told["put"], told["skipped"], told["unreadable"]) == (3, [], {})
    assert [each["source"] for each in told["rejected"]] == ["folder/empty.jpg", "more.zip/torn.png"]
    assert all(each["reason"] for each in told["rejected"])
    gone = json.loads(command.run("remove", "folder", "cat.png", "--json").stdout)
    assert [*gone] == ["commit", "removed"]
    assert sorted(gone["removed"]) == ["cat.png", "folder/empty.jpg"]
    assert json.loads(command.run("remove", "--all", "--json").stdout)["removed"] is None
    assert command.run("add", "stl10", "--json").returncode == 2


def spec(command: Command, name: str, **env: str) -> None:
    document = {
        "pipeline": {"name": name},
        "input": {"pfs": {"repo": "queries", "glob": "/"}},
        "transform": {"image": "shell:1", "cmd": ["true"], "env": env},
    }
    (command.directory / "specs").mkdir(exist_ok=True)
    (command.directory / "specs" / f"{name}.json").write_text(json.dumps(document))


def test_a_variable_is_set_in_every_pipeline_that_has_it(as_user: Connection, command: Command) -> None:
    spec(command, "render", K="3")
    spec(command, "search", K="3", METRIC="cosine")
    spec(command, "other", SIZE="1")
    command.says("deploy", "--specs", "specs")
    (command.directory / "a.jpg").write_bytes(b"a")
    refused = command.fails("query", "a.jpg", "-k", "5")
    assert refused.startswith("K is 3: ")
    said = command.says("deploy", "--specs", "specs", "--set", "K=5")
    assert "pipeline other: unchanged\n" in said
    assert "pipeline search: updated, reprocessing everything\n" in said
    assert "K=5: until the next `lookalike deploy` without; to keep it, change specs/\n" in said
    there = {name: dict(info.details.transform.env) for name, info in ProjectJobs(as_user).pipelines().items()}
    assert there == {"render": {"K": "5"}, "search": {"K": "5", "METRIC": "cosine"}, "other": {"SIZE": "1"}}
    command.says("specs", "--specs", "specs", "--set", "METRIC=euclidean", "-o", "plain")
    assert '"METRIC": "euclidean"' in (command.directory / "plain" / "search.json").read_text()
    for setting, words in (("k=5", "did you mean K?"), ("K", "K is not a variable with its value, such as K=10")):
        done = command.run("deploy", "--specs", "specs", "--set", setting)
        assert done.returncode == 2
        assert words in done.stderr


def test_a_pipeline_is_computed_again_on_request(as_user: Connection, command: Command) -> None:
    spec(command, "render")
    command.says("deploy", "--specs", "specs")
    assert "pipeline render: unchanged\n" in command.says("deploy", "--specs", "specs")
    said = command.says("deploy", "--specs", "specs", "--reprocess", "render")
    assert "pipeline render: updated, reprocessing everything\n" in said
    done = command.run("deploy", "--specs", "specs", "--reprocess", "rander")
    assert done.returncode == 2
    assert "no specification is called rander: there are render" in done.stderr
