"""The status: rejected files, the reasons of failed datums, and missing parts."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pipelines.client.deployment.deployment import make_repo
from pipelines.client.jobs.datums import JobDatums
from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.repository import DeleteFile, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.cluster import pipeline_status
from pipelines.cluster.pipeline_status import RejectedFile
from pipelines.commands.kit import display
from pipelines.library import ingest, picture_sources, queries
from pipelines.library.datasets.samples import library_crops
from pipelines.specifications import pipeline_specs
from pipelines.specifications.pipeline_specs import PipelineSpec
from stages.backbone.photographs import open_photograph
from stages.record import masks
from tests.pipelines.conftest import WaitForJobs
from tests.pipelines.stand_ins import deploy_specs, shell_spec
from tests.servers import Unique

pytestmark = pytest.mark.late_alone


PICKY = r"""
for file in "$in"; do
  case "$file" in
    *bad*) echo "cannot take $(basename "$file")" >&2; exit 3;;
    *) cp "$file" "${LOCALPACHD_PFS:-/pfs}/out/";;
  esac
done
"""


def picky(name: str = "picky", repo: str = "in") -> dict[str, Any]:
    """A pipeline that fails on files called bad."""
    return shell_spec(name, repo, PICKY.replace("$in", f"${repo}"), datum_tries=1)


def test_rejected_files_are_reported_with_their_reasons(
    preprocessing: Connection, wait_for_jobs: WaitForJobs, tmp_path: Path
) -> None:
    directory = tmp_path / "photos [1]"
    directory.mkdir()
    good = directory / "good.jpg"
    next(library_crops(open_photograph("cat"), "cat", 0)).save(good)
    (directory / "torn #2.jpg").write_bytes(good.read_bytes()[:500])
    (directory / "empty.png").touch()
    Repository(preprocessing, "images").write([PutFile("/a.xmp", b"<x:xmpmeta/>")])  # as with pachctl
    added = ingest.add(preprocessing, picture_sources.find([directory]).sources)
    asked = queries.put(preprocessing, queries.find([directory / "empty.png"]))
    assert {job.state for job in wait_for_jobs(added.commit, asked.commit)} == {"success"}
    rejected = pipeline_status.rejections(preprocessing)
    assert [(each.repo, each.source, each.stage) for each in rejected] == [
        ("images", "a.xmp", "preprocess"),
        ("images", "photos [1]/empty.png", "preprocess"),
        ("images", "photos [1]/torn #2.jpg", "preprocess"),
        ("queries", "empty.png", "preprocess"),
    ]
    assert [each.repo for each in pipeline_status.rejections(preprocessing, 1)] == ["images", "queries"]
    assert [each.source for each in rejected if each.is_skipped] == ["a.xmp"]
    assert rejected[1].reason == "the file is empty"
    assert "truncated" in rejected[2].reason
    Repository(preprocessing, "images").write([DeleteFile("/a.xmp")])
    (directory / "torn #2.jpg").write_bytes(good.read_bytes())
    wait_for_jobs(ingest.add(preprocessing, picture_sources.find([directory / "torn #2.jpg"]).sources).commit)
    wait_for_jobs(ingest.remove(preprocessing, ["photos [1]/torn #2.jpg"]).commit)
    assert pipeline_status.rejections(preprocessing) == [
        RejectedFile("images", "photos [1]/empty.png", "preprocess", "the file is empty"),
        RejectedFile("queries", "empty.png", "preprocess", "the file is empty"),
    ]


def test_failed_datums_are_reported_by_path_and_reason(connection: Connection, wait_for_jobs: WaitForJobs) -> None:
    deploy_specs(connection, picky())
    repo = Repository(connection, "in")
    wait_for_jobs(repo.write([PutFile("/one", b"1")]))
    (job,) = wait_for_jobs(repo.write([PutFile("/bad-a", b"a"), PutFile("/bad-b", b"b"), PutFile("/two", b"2")]))
    assert (job.state, job.failed, job.processed, job.total) == ("failure", 2, 1, 4)
    (found,) = pipeline_status.read(connection, ["picky"]).pipelines
    assert found.job == job
    assert sorted(each.paths for each in found.failures) == [("/bad-a",), ("/bad-b",)]
    assert all(len(each.datum) == 64 for each in found.failures)
    assert all("3" in each.reason for each in found.failures)
    assert len(JobDatums(connection, job).failed(1)) == 1
    wait_for_jobs(repo.write([DeleteFile("/bad-a"), DeleteFile("/bad-b")]))
    (found,) = pipeline_status.read(connection, ["picky"]).pipelines
    assert found.job is not None
    assert (found.job.state, list(found.failures)) == ("success", [])


def test_jobs_below_a_failed_one_are_reported(connection: Connection, wait_for_jobs: WaitForJobs) -> None:
    deploy_specs(connection, picky(), picky("below", "picky"))
    jobs = wait_for_jobs(Repository(connection, "in").write([PutFile("/bad", b"")]))
    assert [(job.pipeline, job.state) for job in jobs] == [("picky", "failure"), ("below", "unrunnable")]
    told = pipeline_status.read(connection, ["picky", "below"]).pipelines
    assert told[1].job is not None
    assert "upstream" in told[1].job.reason


@pytest.fixture
def stand_ins(connection: Connection) -> Connection:
    """The connection, with pipelines called as those that read pictures."""
    deploy_specs(connection, shell_spec("preprocess", "images"), shell_spec("preprocess-queries", "queries"))
    make_repo(connection, masks.REPO)
    return connection


def test_pipelines_that_are_not_deployed_are_missing(stand_ins: Connection) -> None:
    found = pipeline_status.read(stand_ins, [spec.name for spec in pipeline_specs.load()])
    assert [each.name for each in found.pipelines] == ["preprocess-queries", "preprocess"]
    assert found.missing == ["features-queries", "features", "partition", "index", "search", "render"]


def test_empty_repos_are_reported(stand_ins: Connection, tmp_path: Path) -> None:
    def told() -> list[str]:
        return [note.split(":")[0] for note in pipeline_status.notes(stand_ins)]

    assert told() == [
        "the repo models has no backbone, so no features are computed",
        "the library is empty",
        "the repo queries is empty",
    ]
    (tmp_path / "a.jpg").write_bytes(b"x")
    ingest.add(stand_ins, picture_sources.find([tmp_path / "a.jpg"]).sources)
    assert told()[1:] == ["the repo queries is empty"]
    queries.put(stand_ins, queries.find([tmp_path / "a.jpg"]))
    assert len(told()) == 1
    ingest.remove(stand_ins, ["a.jpg"])
    assert told()[1:] == ["the library is empty"]


def test_names_are_not_cut_on_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(display, "console", Console(file=written, width=80))
    names = [spec.name for spec in pipeline_specs.load()]
    job = Job(names[0], "0" * 32, "success", 100_000, 2_000, 3, 102_003, 12_345.6, "")
    standing = [pipeline_status.PipelineStatus(name, "crashing", "", job) for name in names]
    display.show_status(pipeline_status.ProjectStatus(standing, [], [], []))
    heading, *rows = written.getvalue().splitlines()[: 1 + len(names)]
    assert "job" in heading and [row.split()[0] for row in rows] == names
    assert rows[0].split()[1:7] == ["crashing", "success", "100000", "2000", "3", "12345.6"]


def test_jobs_of_other_projects_are_left_out(
    connection: Connection, wait_for_jobs: WaitForJobs, unique: Unique
) -> None:
    deploy_specs(connection, picky())
    project = unique("other")
    connection.client.create_project(project)
    foreign = PipelineSpec("picky", Path("picky.json"), picky()).request()
    foreign.pipeline.project.name = project
    foreign.input.pfs.project = connection.project
    foreign.input.pfs.branch = "master"
    connection.client.create_pipeline_from_request(foreign)
    try:
        commit = Repository(connection, "in").write([PutFile("/one", b"1")])
        assert [(job.pipeline, job.id) for job in wait_for_jobs(commit)] == [("picky", commit)]
    finally:
        connection.client.delete_pipeline("picky", force=True, project_name=project)
        connection.client.delete_project(project)


def test_a_commit_that_starts_nothing_or_is_missing_has_no_jobs(
    connection: Connection, wait_for_jobs: WaitForJobs
) -> None:
    connection.client.create_repo("lonely", project_name=connection.project)
    assert wait_for_jobs(Repository(connection, "lonely").write([PutFile("/a", b"")])) == []
    assert ProjectJobs(connection).of_set("0123456789ab4def0123456789abcdef") == []


def test_very_many_rejected_files_are_not_counted_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    found = [RejectedFile("images", f"{number}.jpg", "preprocess", "empty") for number in range(display.MOST_COUNTED)]
    display.show_rejections(found)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "10,000 files or more rejected:"
    assert said[-1] == "  and 9980 more: `lookalike status --json` lists all"
    display.show_rejections(found[1:])
    assert capsys.readouterr().out.startswith("9,999 files rejected:")
