"""The overview of the sheets in a directory, of real sheets and of strange ones."""

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from urllib.parse import unquote

import pytest
from PIL import Image

from pipelines.library import sheet_overview
from pipelines.library.result_sheets import ResultSheet, directory_name, pages
from stages import render
from stages.quality.entry_answers import EntryAnswers, QueryAnswer, QueryMatch
from stages.record.origin import Origin
from stages.record.sources import Source

Write = Callable[..., ResultSheet]


def jpeg(colour: str) -> bytes:
    buffer = BytesIO()
    Image.new("RGB", (96, 96), colour).save(buffer, "JPEG")
    return buffer.getvalue()


RED = jpeg("red")


def answers(entry: str, queries: int, distance: float = 0.25) -> EntryAnswers:
    """An entry of so many queries with a neighbour each."""
    match = QueryMatch("m", distance, (Source("lib/a.jpg", "0" * 64),), RED)
    each = tuple(
        QueryAnswer(f"{n:064}", (Source(f"{entry}/{n}.png", "0" * 64),), RED, (match,)) for n in range(queries)
    )
    return EntryAnswers(entry, 1, Origin("a" * 64, "pad"), "euclidean", each)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the sheet of an entry into `results`, as render and export do."""

    def written(entry: str, queries: int = 1, distance: float = 0.25) -> ResultSheet:
        directory = tmp_path / "results" / directory_name(entry)
        render.write(entry, answers(entry, queries, distance), directory)
        return ResultSheet(entry, directory)

    return written


def entries(*texts: str) -> list[Sequence[str]]:
    """The link, the name and the facts of each entry on pages."""
    found: list[Sequence[str]] = []
    for text in texts:
        for item in re.findall(r'<li><a href="(.*?)">(.*?)</a></li>', text):
            name = re.search(r"<bdi>(.*?)</bdi>", item[1])
            assert name is not None
            found.append((unquote(item[0]), name[1], *re.findall(r"<small>(.*?)</small>", item[1])))
    return found


def test_all_entries_are_shown_with_a_picture_and_a_link(write: Write, tmp_path: Path) -> None:
    sheets = [write("trip 1%", 3, 0.5), write("a.png"), write("é?#.jpg", distance=0)]
    page = sheet_overview.write(tmp_path / "results", sheets)
    assert page == tmp_path / "results" / "index.html"
    text = page.read_text("utf-8")
    assert entries(text) == [
        ("a.png/index.html", "a.png", "1 query picture", "nearest at distance 0.2500"),
        ("trip 1%/index.html", "trip 1%", "3 query pictures", "nearest at distance 0.5000"),
        ("é?#.jpg/index.html", "é?#.jpg", "1 query picture", "nearest at distance 0"),
    ]
    assert all((tmp_path / "results" / link).is_file() for link, *_ in entries(text))
    assert text.count('<img src="data:image/jpeg;base64,') == 3
    assert "<script" not in text
    assert sheet_overview.write(tmp_path / "results", reversed(sheets)) == page
    assert page.read_text("utf-8") == text


def test_sheets_of_earlier_calls_stay_and_other_directories_are_left_out(write: Write, tmp_path: Path) -> None:
    first = write("a/b")
    (tmp_path / "results" / "evaluation").mkdir()
    (tmp_path / "results" / "evaluation" / "index.html").write_text("a report")
    page = sheet_overview.write(tmp_path / "results", [write("c.png")])
    assert page is not None
    assert [each[1] for each in entries(page.read_text("utf-8"))] == ["a%2Fb", "c.png"]
    sheet_overview.write(tmp_path / "results", [first])
    assert [each[1] for each in entries(page.read_text("utf-8"))] == ["a/b", "c.png"]


def test_many_entries_have_pages_and_fewer_ones_remove_the_last(write: Write, tmp_path: Path) -> None:
    one = write("000.png").directory
    copies = [shutil.copytree(one, one.with_name(f"{n:03}.png")) for n in range(1, 101)]
    sheets = [ResultSheet(each.name, each) for each in (one, *copies)]
    assert sheet_overview.write(tmp_path / "results", sheets) is not None
    first, second = (path.read_text("utf-8") for path in pages(tmp_path / "results"))
    assert [each[1] for each in entries(first, second)] == [f"{n:03}.png" for n in range(101)]
    assert '<a href="page-2.html" rel="next">' in first
    for path in sheets[0].directory.iterdir():
        path.unlink()
    sheet_overview.write(tmp_path / "results", sheets)
    assert [path.name for path in pages(tmp_path / "results")] == ["index.html"]


def test_an_entry_that_is_called_like_the_page_is_kept(write: Write, tmp_path: Path) -> None:
    sheet = write("index.html")
    assert sheet_overview.write(tmp_path / "results", [sheet]) is None
    assert (sheet.directory / "neighbors.jsonl").is_file()


def test_sheets_of_another_render_have_a_name_and_a_link(tmp_path: Path) -> None:
    directory = tmp_path / "results" / "<mine>"
    directory.mkdir(parents=True)
    (directory / "index.html").write_bytes(b"<html>\xff")
    (directory / "neighbors.jsonl").write_text("no JSON")
    page = sheet_overview.write(tmp_path / "results", [])
    assert page is not None
    assert "no preview" in page.read_text("utf-8")
    assert entries(page.read_text("utf-8")) == [("<mine>/index.html", "&lt;mine&gt;", "0 query pictures")]


def test_an_entry_without_queries_has_no_distance(tmp_path: Path) -> None:
    none = replace(answers("bad.txt", 0), origin=None, metric=None)
    render.write("bad.txt", none, tmp_path / "results" / "bad.txt")
    page = sheet_overview.write(tmp_path / "results", [])
    assert page is not None
    assert entries(page.read_text("utf-8")) == [("bad.txt/index.html", "bad.txt", "0 query pictures")]
