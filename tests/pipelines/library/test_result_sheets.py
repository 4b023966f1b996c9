"""Exporting result sheets: all or some, current or earlier, into directories named like the entries."""

from pathlib import Path

import pytest

from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import queries, result_folders, result_sheets
from pipelines.library.picture_sources import PictureSource
from pipelines.library.queries import QueryEntries
from pipelines.library.result_sheets import directory_name, export
from tests.pipelines.conftest import WaitForJobs

pytestmark = pytest.mark.late_alone

FILES = ["grid.png", "index.html", "neighbors.jsonl"]
ODD = ['a "b" #1', "[x]{y}*?.jpg", "😀.jpg", "...", "%2F", "back\\slash", "..jpg", "x" + "é" * 100 + ".jpg"]


def ask(connection: Connection, wait_for_jobs: WaitForJobs, directory: Path, **contents: str) -> str:
    """Puts queries of these names and contents and waits for their sheets; returns the commit."""
    for name, content in contents.items():
        (directory / name).write_text(content)
    groups = [[PictureSource(name, directory / name, len(content))] for name, content in contents.items()]
    asked = queries.put(connection, QueryEntries(groups))
    assert [job.state for job in wait_for_jobs(asked.commit)] == ["success"]
    return asked.commit


def read(sheet: result_sheets.ResultSheet) -> str:
    return (sheet.directory / "neighbors.jsonl").read_text()


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "results"


def test_all_sheets_or_the_wanted_ones(
    sheets: Connection, wait_for_jobs: WaitForJobs, tmp_path: Path, to: Path
) -> None:
    names = [f"q{number:02}" for number in range(13)]
    ask(sheets, wait_for_jobs, tmp_path, **{name: name.upper() for name in names})
    assert [each.entry for each in export(sheets, to)] == names
    assert sorted(path.name for path in to.iterdir()) == [result_folders.MARK, *names]
    wanted = export(sheets, tmp_path / "wanted", ["q12", "q00"])
    assert [(each.entry, read(each)) for each in wanted] == [("q12", "Q12"), ("q00", "Q00")]
    assert sorted(path.name for path in wanted[0].directory.iterdir()) == FILES
    with pytest.raises(LookalikeError, match=r"for nosuch; these queries have one: q00, .*, q09 and 3 more$"):
        export(sheets, to, ["nosuch"])


def test_directories_are_named_like_their_entries(
    sheets: Connection, wait_for_jobs: WaitForJobs, tmp_path: Path, to: Path
) -> None:
    (tmp_path / "from").mkdir()
    ask(sheets, wait_for_jobs, tmp_path / "from", **{name: name for name in ODD})
    found = export(sheets, to, ODD)
    assert [each.entry for each in found] == ODD
    assert [read(each) for each in found] == ODD
    assert [each.directory.name for each in found[:3]] == ODD[:3]
    assert all(each.directory.parent == to for each in found)


def test_a_sheet_is_replaced_and_nothing_else_is_touched_and_earlier_ones_are_there(
    sheets: Connection, wait_for_jobs: WaitForJobs, tmp_path: Path, to: Path
) -> None:
    first = ask(sheets, wait_for_jobs, tmp_path, a="old")
    (to / "a").mkdir(parents=True)
    (to / "a" / "mine.jpg").write_text("a picture of the user's")
    export(sheets, to)
    second = ask(sheets, wait_for_jobs, tmp_path, a="new", b="later")
    sheet, _ = export(sheets, to)
    assert read(sheet) == "new"
    assert sorted(path.name for path in (to / "a").iterdir()) == [*FILES[:2], "mine.jpg", FILES[2]]
    assert [(each.entry, read(each)) for each in export(sheets, to, at=first)] == [("a", "old")]
    assert [(each.entry, read(each)) for each in export(sheets, to, at=second)] == [("a", "new"), ("b", "later")]
    assert [read(each) for each in export(sheets, to, ["a"], at="master^")] == ["old"]
    with pytest.raises(LookalikeError, match="no result sheet for b at commit .*; these queries have one: a"):
        export(sheets, to, ["b"], at=first)
    for at in ("nonsense", "0123456789ab4def0123456789abcdef", "master^^^^^^"):
        with pytest.raises(LookalikeError, match="render has no commit .*`lookalike commits render` lists them"):
            export(sheets, to, at=at)


def test_sheets_of_a_failed_job_do_not_count(
    sheets: Connection, wait_for_jobs: WaitForJobs, tmp_path: Path, to: Path
) -> None:
    ask(sheets, wait_for_jobs, tmp_path, a="good")
    repo = Repository(sheets, "queries")
    commit = repo.write([PutFile("/a/neighbors.jsonl/x", b"x"), PutFile("/a", b"half")])  # both a file and a directory
    assert [job.state for job in wait_for_jobs(commit)] != ["success"]
    assert [read(each) for each in export(sheets, to)] == ["good"]
    with pytest.raises(LookalikeError, match=f"commit {commit} of render failed: "):
        export(sheets, to, at=commit)


def test_without_sheets(connection: Connection, to: Path) -> None:
    assert export(connection, to) == []
    assert not to.exists()
    with pytest.raises(LookalikeError, match=r"no result sheet for a, nor for any other .*lookalike status"):
        export(connection, to, ["a"])


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ("holiday", "holiday"),
        ("a b [1].jpg", "a b [1].jpg"),
        ("...", "%2E%2E%2E"),
        (".", "%2E"),
        ("a/b", "a%2Fb"),
        ("nul\0", "nul%00"),
        (".hidden", ".hidden"),
    ],
)
def test_directory_names(entry: str, name: str) -> None:
    assert directory_name(entry) == name


def test_long_directory_names_stay_distinct() -> None:
    names = [directory_name("é" * 120 + end) for end in ("a", "b")]
    assert len(set(names)) == 2
    assert all(len(name.encode()) <= 255 and name.startswith("é" * 100) for name in names)
