"""Answers as tables: what programs read back, and what spreadsheets must not run."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from stages.record.sources import Source
from stages.report import answer_table
from stages.report.answer_table import CSV, PARQUET
from tests.example_counts import examples


def answer(*sources: Sequence[Source], **known: Any) -> dict[str, Any]:
    """An answer with a neighbour for each group of sources."""
    listed = [[{**each._asdict(), "number": at, **known} for at, each in enumerate(group)] for group in sources]
    facts = {"similarity": None, "likeness": "similar", "same": False, "near": False, "thumbnail": "/images/x"}
    found = [
        {"rank": at, "id": f"{at:064}", "distance": 0.25, "group": at, "sources": group, **facts}
        for at, group in enumerate(listed, 1)
    ]
    return {"neighbors": found, "pictures": [{"name": "mine.png"}]}


def encoded(given: Any, media_type: str) -> bytes:
    """An answer as a table."""
    return answer_table.encoded(answer_table.to_arrow(answer_table.rows(given)), media_type)


def read(given: Any) -> list[dict[str, str]]:
    """The rows of an answer's CSV as another program reads them."""
    return list(csv.DictReader(io.StringIO(encoded(given, CSV).decode(), newline="")))


def test_a_row_is_a_file_with_all_that_is_known_of_it() -> None:
    one = Source("trip/a.jpg", "1" * 64, 640, 480, 9000, "2019-08-03T16:30:00", camera='Canon "5D", II')
    given = answer([one, Source("b.jpg", "2" * 64)], [Source("c.jpg", "3" * 64)], attributes={"stars": 5, "sold": True})
    first, second, third = read(given)
    assert list(first)[:10] == [
        *("query", "rank", "distance", "likeness", "similarity", "group", "path", "width", "height", "bytes"),
    ]
    assert list(first)[-2:] == ["sha256", "id"]
    assert (first["query"], first["rank"], first["distance"], first["similarity"]) == ("mine.png", "1", "0.25", "")
    assert (first["taken"], first["camera"]) == ("2019-08-03T16:30:00", 'Canon "5D", II')
    assert (first["stars"], first["sold"], first["width"]) == ("5", "true", "640")
    assert (second["rank"], second["path"], second["width"], second["taken"]) == ("1", "b.jpg", "", "")
    assert third["rank"] == "2"
    assert encoded(given, CSV).count(b"\r\n") == 4
    table = pq.read_table(io.BytesIO(encoded(given, PARQUET)))
    assert table.column_names == list(first)
    assert table.column("taken").to_pylist()[0].isoformat() == "2019-08-03T16:30:00"
    assert table.column("stars").to_pylist() == [5, 5, 5]
    assert table.column("width").to_pylist() == [640, None, None]


@pytest.mark.parametrize("begins", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1"])
def test_no_text_is_a_formula(begins: str) -> None:
    (row,) = read(answer([Source(f"{begins}.jpg", "1" * 64, camera=begins)], latitude=-33.5))
    assert (row["path"], row["camera"], row["latitude"]) == (f"./{begins}.jpg", f"'{begins}", "-33.5")


@settings(max_examples=examples(100))
@given(st.text(st.characters(exclude_characters="\0"), max_size=20), st.binary(max_size=5))
def test_any_name_comes_back(text: str, odd: bytes) -> None:
    path = f"x{text}".encode("utf-8", "replace").decode() + odd.replace(b"\0", b"").decode("utf-8", "surrogateescape")
    (row,) = read(answer([Source(path, "1" * 64)]))
    assert row["path"] == answer_table.to_arrow(answer_table.rows(answer([Source(path, "1" * 64)])))["path"][0].as_py()
    assert row["path"] == path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def test_an_answer_without_rows_has_its_columns_and_unknown_facts_are_texts() -> None:
    assert encoded(answer(), CSV).startswith(b"query,rank,distance,likeness,similarity,group,path,width,")
    assert answer_table.to_arrow(answer_table.rows(answer([Source("a", "1" * 64)])))["camera"].null_count == 1
