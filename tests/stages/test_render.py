"""The render stage as Pachyderm runs it: directories in, files out, and equal bytes for equal answers."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipelines.library.datasets.samples import library_crops, query_crops
from stages import render
from stages.backbone.photographs import open_photograph
from stages.datum.contract import Datum, DatumInput, StageError
from stages.files import query_texts, thumbnail_files
from stages.files.packs import Rejection, write_rejections
from stages.files.tables.neighbour_table import NeighbourTable
from stages.record.origin import Origin
from stages.record.pfs_names import escape_component, escape_path
from stages.record.sources import Source
from stages.render import true_name
from stages.report.query_sample import GRID_QUERIES, most_pictured, sheet_queries
from stages.report.result_grid import MARGIN, TILE
from stages.report.result_pages import MOST_QUERIES
from tests.stages.image_tables import MODEL, image_table

FILES = ["grid.png", "index.html", "neighbors.jsonl"]


class Picture:
    """A real picture in the form of the earlier stages."""

    def __init__(self, image: Image.Image, *paths: str) -> None:
        square = image.convert("RGB").resize((96, 96), Image.Resampling.LANCZOS)
        self.id = hashlib.sha256(square.tobytes()).hexdigest()
        self.sources = tuple(Source(path, hashlib.sha256(path.encode()).hexdigest()) for path in paths)
        self.vector = np.asarray(square.resize((4, 4)), np.float32).ravel()
        buffer = BytesIO()
        square.save(buffer, "JPEG", quality=85)
        self.thumbnail = buffer.getvalue()


@pytest.fixture(scope="module")
def library() -> list[Picture]:
    return [
        Picture(crop, f"photos/{label}-{number:02d}.jpg")
        for label in ("cat", "rocket", "tissue", "coffee")
        for number, crop in enumerate(library_crops(open_photograph(label), label, 0), start=1)
        if number <= 10
    ]


@pytest.fixture(scope="module")
def queries() -> list[Picture]:
    return [
        Picture(crop, f"trip/{label}-{number}.png")
        for label in ("cat", "rocket", "tissue")
        for number, crop in enumerate(query_crops(open_photograph(label), label, 0), start=1)
    ]


def write_queries(directory: Path, pictures: Sequence[Picture], rejected: Sequence[Rejection] = ()) -> Path:
    """The output of features-queries for an entry."""
    directory.mkdir(parents=True)
    each = sorted(pictures, key=lambda picture: picture.id)
    images = image_table([p.id for p in each], 48, [p.sources for p in each], [p.thumbnail for p in each])
    images.write(directory / "images.parquet")
    thumbnail_files.write(directory / "images.thumbnails", [p.thumbnail for p in each])
    if rejected:
        write_rejections(directory / "rejected.jsonl", rejected)
    return directory


def write_search(directory: Path, queries: Sequence[Picture], library: Sequence[Picture], k: int = 3) -> Path:
    """The output of search for an entry: a table for each first digit of the library's ids."""
    directory.mkdir(parents=True)
    visible = set(sheet_queries(directory.name, [query.id for query in queries], most_pictured(k)))
    for digit in sorted({picture.id[0] for picture in library}):
        members = [picture for picture in library if picture.id[0] == digit]
        rows = []
        for query in sorted(queries, key=lambda each: each.id):
            near = [(float(np.linalg.norm(query.vector - each.vector)), each.id, each) for each in members]
            best = sorted(near, key=lambda row: row[:2])[:k]
            rows += [(query.id, rank, distance, found) for rank, (distance, _, found) in enumerate(best)]
        table = NeighbourTable(
            queries=[query for query, *_ in rows],
            ranks=np.array([rank for _, rank, _, _ in rows], np.int32),
            ids=[found.id for *_, found in rows],
            distances=np.array([distance for _, _, distance, _ in rows], np.float32),
            sources=[found.sources for *_, found in rows],
            thumbnails=[found.thumbnail if query in visible else None for query, _, _, found in rows],
            origin=Origin(MODEL, "pad"),
            metric="euclidean",
            k=k,
        )
        table.write(directory / f"{digit}.parquet")
    return directory


def rendered(out: Path, *inputs: DatumInput, k: int = 3) -> Path:
    """Runs the stage in this process; returns the directory that it wrote."""
    out.mkdir(parents=True, exist_ok=True)
    render.start({"K": str(k)})(Datum({each.name: each for each in inputs}, out))
    (entry,) = out.iterdir()
    assert sorted(path.name for path in entry.iterdir() if not path.name.startswith("page-")) == FILES
    return entry


def queries_input(directory: Path) -> DatumInput:
    return DatumInput("queries", directory, f"queries/3f/{directory.name}", "c0ffee")


def search_input(directory: Path) -> DatumInput:
    return DatumInput("search", directory, directory.name, "c0ffee")


def lines(entry: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (entry / "neighbors.jsonl").read_text("ascii").splitlines()]


def test_the_answers_are_those_of_the_segments_together(
    tmp_path: Path, library: list[Picture], queries: list[Picture]
) -> None:
    left = write_queries(tmp_path / "queries" / "trip", queries)
    right = write_search(tmp_path / "search" / "trip", queries, library)
    entry = rendered(tmp_path / "out", queries_input(left), search_input(right))
    by_id = {picture.id: picture for picture in library}
    answers = lines(entry)
    assert [answer["query"] for answer in answers] == sorted(query.id for query in queries)
    for answer in answers:
        query = next(query for query in queries if query.id == answer["query"])
        near = sorted((np.float32(np.linalg.norm(query.vector - each.vector)), each.id) for each in library)[:3]
        found = answer["neighbors"]
        assert isinstance(found, list)
        assert [(np.float32(each["distance"]), each["id"]) for each in found] == near
        assert [each["sources"] for each in found] == [[source.path for source in by_id[id].sources] for _, id in near]
        assert (answer["k"], answer["metric"], answer["model"]) == (3, "euclidean", MODEL)
        assert answer["sources"] == [source.path for source in query.sources]


def test_equal_answers_give_equal_bytes(tmp_path: Path, library: list[Picture], queries: list[Picture]) -> None:
    """For any ids of the commits, any paths of the files and any order of the segments."""
    outputs = []
    for where in ("here", "there"):
        left = write_queries(tmp_path / where / "queries" / "trip", queries)
        right = write_search(tmp_path / where / "search" / "trip", queries, library)
        sides = [
            DatumInput("queries", left, "queries/3f/trip", hashlib.md5(where.encode()).hexdigest()),
            DatumInput("search", right, "trip", hashlib.md5(where.encode()).hexdigest()),
        ]
        entry = rendered(tmp_path / where / "out", *sides)
        outputs.append({name: (entry / name).read_bytes() for name in FILES})
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("alone", [True, False])
def test_words_are_shown_without_the_words_of_pictures(
    alone: bool, tmp_path: Path, library: list[Picture], queries: list[Picture]
) -> None:
    """No likeness, though the model has a scale, and no “same picture”."""
    words = Picture(Image.new("RGB", (8, 8)), "trip/a.txt")
    words.thumbnail = b""
    text = query_texts.make("a <red> bicycle 🚲", ("snow", "ice"), words.sources[0])
    words.id = text.id
    asked = [words] if alone else [words, *queries]
    left = write_queries(tmp_path / "queries" / "trip", asked)
    limits = {"changed": 1.0, "very_similar": 10.0, "similar": 1e6}
    scale = {"model": MODEL, "unit": False, "euclidean": limits, "cosine": limits}
    (left / "scale.json").write_text(json.dumps(scale))
    query_texts.write(left / "texts.jsonl", [text])
    entry = rendered(
        tmp_path / "out", queries_input(left), search_input(write_search(tmp_path / "trip", asked, library))
    )
    found = {each["query"]: each for each in lines(entry)}
    assert (found[text.id]["text"], found[text.id]["without"]) == (text.text, ["snow", "ice"])
    assert {each["likeness"] for each in found[text.id]["neighbors"]} == {None}
    assert [each for each in found.values() if "text" in each] == [found[text.id]]
    page = (entry / "index.html").read_text()
    assert "a &lt;red&gt; bicycle 🚲" in page and "without snow and ice" in page
    assert "on another scale than those between pictures" in page
    title = "Nearest pictures for “a &lt;red&gt; bicycle 🚲”" if alone else "Nearest pictures for “trip”"
    assert title in page
    assert ("1 text, each" if alone else f"{len(queries)} query pictures and 1 text, each") in page
    assert any(word in page for word in ("similar", "same picture")) is not alone
    with Image.open(entry / "grid.png") as grid:
        assert grid.height > TILE


@pytest.fixture(scope="module")
def many() -> list[Picture]:
    found = [
        Picture(crop, f"trip/{label}-{number:02d}.png")
        for label in ("brick", "clock", "coins", "motorcycle")
        for number, crop in enumerate(library_crops(open_photograph(label), label, 0), start=1)
    ]
    assert len({picture.id for picture in found}) == len(found) == MOST_QUERIES + 20
    return found


def test_all_queries_are_on_pages_of_bounded_size_and_the_grid_has_a_few(
    tmp_path: Path, library: list[Picture], many: list[Picture]
) -> None:
    left = write_queries(tmp_path / "queries" / "trip", many)
    right = write_search(tmp_path / "search" / "trip", many, library[:9])
    entry = rendered(tmp_path / "out", queries_input(left), search_input(right))

    names = {picture.id: picture.sources[0].path for picture in many}
    pages = [(entry / name).read_text("utf-8") for name in ("index.html", "page-2.html")]
    assert not (entry / "page-3.html").exists()
    shown = [re.findall(r'alt="Query picture ([^"]*)"', html) for html in pages]
    assert shown == [sorted(names.values())[:MOST_QUERIES], sorted(names.values())[MOST_QUERIES:]]
    assert [html.count("<img ") for html in pages] == [4 * MOST_QUERIES, 4 * 20]
    assert len(lines(entry)) == len(many)

    with Image.open(entry / "grid.png") as image:
        sheet = np.asarray(image)
    rows = {picture.id: top for picture in many if (top := _top_of(picture, sheet)) is not None}
    assert sorted(rows, key=rows.__getitem__) == sheet_queries("trip", names, GRID_QUERIES)


def test_queries_whose_neighbours_have_no_pictures_come_last(
    tmp_path: Path, library: list[Picture], many: list[Picture]
) -> None:
    k = 30
    left = write_queries(tmp_path / "queries" / "trip", many)
    right = write_search(tmp_path / "search" / "trip", many, library, k)
    entry = rendered(tmp_path / "out", queries_input(left), search_input(right), k=k)
    count = len(list(entry.glob("page-*.html"))) + 1
    pages = [
        (entry / f"page-{n}.html" if n > 1 else entry / "index.html").read_text("utf-8") for n in range(1, count + 1)
    ]
    shown = [name for html in pages for name in re.findall(r'alt="Query picture ([^"]*)"', html)]
    names = {picture.id: picture.sources[0].path for picture in many}
    pictured = sorted(names[query] for query in sheet_queries("trip", names, most_pictured(k)))
    assert len(pictured) == 100
    assert shown == [*pictured, *sorted({*names.values()} - {*pictured})]
    assert all(html.count("<img ") <= 4 * MOST_QUERIES for html in pages)
    assert "Neighbours are shown as pictures for 100 of the 120 queries" in pages[0]
    assert "no preview" not in pages[-1]
    assert pages[-1].count("<small>distance</small>") > 12 * k - 1
    assert "photos/cat-01.jpg" in pages[-1]


def _top_of(picture: Picture, sheet: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> int | None:
    """The position of a picture in the grid's column of queries, in pixels from the top; None if it is not there."""
    with Image.open(BytesIO(picture.thumbnail)) as image:
        tile = np.asarray(image.resize((TILE, TILE), Image.Resampling.LANCZOS))[1:-1, 1:-1]  # within the outline
    column = sheet[:, MARGIN + 1 : MARGIN + TILE - 1]
    tops = np.flatnonzero((column[: 1 - len(tile)] == tile[0]).all(axis=(1, 2)))
    return next((int(top) for top in tops if (column[top : top + len(tile)] == tile).all()), None)


def test_only_queries_means_an_empty_library(tmp_path: Path, queries: list[Picture]) -> None:
    left = write_queries(tmp_path / "queries" / "trip", queries)
    entry = rendered(tmp_path / "out", queries_input(left))
    assert [answer["neighbors"] for answer in lines(entry)] == [[]] * len(queries)
    assert all(answer["metric"] is None for answer in lines(entry))
    assert "The library is empty" in (entry / "index.html").read_text("utf-8")


def test_an_entry_without_a_good_picture(tmp_path: Path) -> None:
    rejected = [
        Rejection("trip/a.txt", "preprocess", "not a picture"),
        Rejection("trip/b.jpg", "preprocess", "empty file"),
    ]
    left = write_queries(tmp_path / "queries" / "trip", [], rejected)
    entry = rendered(tmp_path / "out", queries_input(left))
    assert (entry / "neighbors.jsonl").read_bytes() == b""
    html = (entry / "index.html").read_text("utf-8")
    assert "This entry has no pictures to search for." in html
    assert all(each.source in html and each.reason in html for each in rejected)


def test_sides_must_be_the_same_entry(tmp_path: Path, queries: list[Picture]) -> None:
    left = write_queries(tmp_path / "queries" / "trip", queries)
    right = write_search(tmp_path / "search" / "walk", queries, [])
    with pytest.raises(StageError, match=r"\['trip', 'walk'\].*specs/render\.json"):
        rendered(tmp_path / "out", queries_input(left), search_input(right))
    with pytest.raises(StageError, match="not the whole repo"):
        rendered(tmp_path / "out", DatumInput("search", right, "", "c0ffee"))
    with pytest.raises(StageError, match="not none"):
        rendered(tmp_path / "out")


def test_queries_without_their_thumbnails_fail_with_a_reason(tmp_path: Path, queries: list[Picture]) -> None:
    left = write_queries(tmp_path / "trip", queries)
    (left / "images.thumbnails").unlink()
    with pytest.raises(StageError, match=r"^images\.thumbnails, .* is missing: .* --reprocess features-queries$"):
        rendered(tmp_path / "out", queries_input(left))


LONG = "".join(chr(0x4E00 + n) for n in range(90)) + ".jpg"


@pytest.mark.parametrize(
    ("entry", "sources", "name"),
    [
        ("holiday", ["holiday/a.jpg"], "holiday"),
        (escape_component("a/b [1].jpg"), ["a/b [1].jpg"], "a/b [1].jpg"),
        (escape_component(LONG).partition("/")[0], [LONG], LONG),
        (escape_path(f"{LONG}/a.jpg").partition("/")[0], [f"{LONG}/a.jpg"], LONG),
        ("plain%", [], "plain…"),
    ],
)
def test_entries_have_their_true_names(entry: str, sources: list[str], name: str) -> None:
    pictures = image_table(["0" * 64], 4, [[Source(path, "0" * 64) for path in sources]])
    assert true_name(entry, pictures, []) == name
    assert true_name(entry, None, [Rejection(path, "preprocess", "empty") for path in sources]) == name
