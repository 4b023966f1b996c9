"""Answers as rows: for pandas, for Arrow, and as tiles in a notebook."""

import re
import sys
from typing import Any

import pyarrow as pa
import pytest

from lookalike.neighbours import Neighbours
from pipelines.errors import LookalikeError
from tests.stages.report.page_documents import PageDocument

HOSTILE = "trip/<script>alert(1)<script>\"'&\u202e.png"


def answer(**changes: Any) -> dict[str, Any]:
    """A service's answer with two neighbours."""
    first = {
        "rank": 1,
        "id": "a" * 64,
        "distance": 0.52996075,
        "likeness": "near copy",
        "similarity": 97.25,
        "same": False,
        "near": True,
        "group": 1,
        "sources": [
            {"path": HOSTILE, "number": 1, "sha256": "0" * 64, "lens": "EF50mm", "latitude": 52.5, "longitude": 13.4},
            {"path": "copies/\udcff.png", "number": 0, "sha256": "1" * 64, "of a later version": 7},
        ],
    }
    second = first | {
        "rank": 2,
        "id": "b" * 64,
        "distance": 1.25,
        "likeness": None,
        "similarity": None,
        "near": False,
        "group": 2,
    }
    found = {
        "neighbors": [first, second],
        "commits": {"project": "default", "index": "1" * 32, "library": "2" * 32, "model": "3" * 32},
        "model": {"described": "small at 32 px", "sha256": "5eed" * 16},
        "metric": "euclidean",
        "exact": True,
        "recall": None,
    }
    return found | changes


def thumbnail(id: str) -> bytes:
    return b"\xff\xd8" + id[:1].encode()


def gone(id: str) -> bytes:
    raise LookalikeError("gone")


def test_a_neighbour_has_its_facts() -> None:
    found = Neighbours(answer(), thumbnail)
    assert len(found) == 2
    assert (found[0].path, found[0].distance, found[0].near) == (HOSTILE, 0.52996075, True)
    assert [each.rank for each in found] == [1, 2]
    assert found[-1].thumbnail == b"\xff\xd8b"
    assert [(each.lens, each.latitude) for each in found[0].sources] == [("EF50mm", 52.5), ("", None)]
    assert found.model == "small at 32 px"
    assert repr(found).splitlines()[1] == f"   1     0.5300  near copy     {HOSTILE}"


def test_groups_are_folded_in_tiles_and_sources_keep_their_numbers() -> None:
    found = Neighbours(answer(), thumbnail)
    assert [len(each) for each in found.groups] == [1, 1]
    assert [found[0].number(at) for at in (0, 1, 2, -1)] == [1, 0, 2, -1]
    copies = answer()
    copies["neighbors"][1]["group"] = 1
    folded = Neighbours(copies, thumbnail)
    assert [[each.rank for each in group] for group in folded.groups] == [[1, 2]]
    page = PageDocument(folded._repr_html_())
    assert len(page.pictures) == 1
    assert "and 1 near-duplicate" in page.words


def test_arrow_and_pandas_have_one_row_for_each() -> None:
    found = Neighbours(answer(), thumbnail)
    table = found.to_arrow()
    assert table.schema == Neighbours.schema
    assert table["distance"].type == pa.float32()
    assert table["paths"][0].as_py() == [HOSTILE, "copies/?.png"]
    assert table["similarity"].to_pylist() == [97.25, None]
    frame = found.to_pandas()
    assert list(frame.columns) == Neighbours.schema.names
    assert str(frame["distance"].dtype) == "float32"
    assert frame["rank"].tolist() == [1, 2]
    assert frame["similarity"].isna().tolist() == [False, True]


def test_an_answer_without_neighbours_is_a_table_with_the_same_columns() -> None:
    found = Neighbours(answer(neighbors=[]), thumbnail)
    assert found.to_arrow().schema == Neighbours.schema
    assert list(found.to_pandas().columns) == Neighbours.schema.names
    assert "0 pictures" in repr(found)


def test_the_tiles_load_nothing_and_names_are_text() -> None:
    read = PageDocument(Neighbours(answer(), thumbnail)._repr_html_())
    assert len(read.pictures) == 2
    assert "<script>alert(1)" in read.words
    assert "\u202e" not in read.words
    assert "near copy" in read.words and "1.250" in read.words  # a word, or else the number
    assert "97.2 %" in read.words or "97.3 %" in read.words
    assert "+1" in read.words


def test_the_tiles_do_without_thumbnails_that_are_gone() -> None:
    page = Neighbours(answer(exact=False, recall=0.97), gone)._repr_html_()
    assert not PageDocument(page).pictures
    assert re.search("0[.]5300", page)
    assert "approximate" in page


def test_a_table_needs_pandas_only_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Neighbours(answer(), thumbnail)
    monkeypatch.setitem(sys.modules, "pandas", None)  # makes its import fail
    with pytest.raises(LookalikeError, match="pip install pandas"):
        found.to_pandas()
