"""Labels read from CSV files as people write them: every label is found or named with its line and a reason."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from stages.record.label_files import LabelRow, LineProblem, SourceLabels, format_csv, from_folders, read, unite


def labels(content: bytes) -> dict[str, str]:
    """The labels of one file without problems."""
    found = unite([("a.csv", content)])
    assert found.problems == []
    return found.of


def reason(content: bytes, name: str = "a.csv") -> str:
    """The only problem of a file."""
    (problem,) = (each for each in read(name, content) if isinstance(each, LineProblem))
    return problem.said


@pytest.mark.parametrize(
    "content",
    [
        b"source,label\nx/a.jpg,cat\n",
        b"\xef\xbb\xbfsource,label\r\nx/a.jpg,cat\r\n",
        b"source,label\rx/a.jpg,cat\r",
        b'"source","label"\n"x/a.jpg","cat"\n',
        b"Label , Source\n cat ,x/a.jpg\n",
        b"\nsource,label,remark\n\nx/a.jpg,cat,old\n,,\n",
        b"source,label,name\nx/a.jpg,7,cat\n",
        b"source,label,name\nx/a.jpg,cat,\n",
        b"source,label,name\nx/a.jpg,cat\n",
    ],
)
def test_labels_are_read_as_programs_write_them(content: bytes) -> None:
    assert labels(content) == {"x/a.jpg": "cat"}


def test_names_with_commas_quotes_and_bytes_that_are_not_utf_8() -> None:
    content = b'source,label\n"a, ""b"".jpg",cat\ncaf\xe9.jpg,dog\n'
    assert labels(content) == {'a, "b".jpg': "cat", "caf\udce9.jpg": "dog"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "a.csv: it is empty; its first line should be source,label"),
        (b"x.jpg,cat\n", "a.csv, line 1: the first line must name the columns"),
        (b"source;label\nx.jpg;cat\n", "a.csv, line 1: the columns must be separated by commas"),
        (b"source\tlabel\nx.jpg\tcat\n", "a.csv, line 1: the columns must be separated by commas"),
        ("source,label\n".encode("utf-16"), "a.csv: it is in UTF-16; save it as CSV in UTF-8"),
        (b"source,label\nx.jpg\n", "a.csv, line 2: a line needs a source and a label; this one has 1 of the columns"),
        (b"source,label\nx.jpg,\n", "a.csv, line 2: the label is empty"),
        (b"source,label\n,cat\n", "a.csv, line 2: the source is empty"),
        (b"source,label\nx.jpg,\xe9\n", "a.csv, line 2: the label is not UTF-8"),
        (
            b'source,label\nx.jpg,"cat\n',
            "a.csv, line 2: it is not valid CSV (unexpected end of data); nothing after it",
        ),
    ],
)
def test_bad_lines_have_a_place_and_a_reason(content: bytes, said: str) -> None:
    assert reason(content).startswith(said)


def test_other_files_are_named() -> None:
    assert reason(b"notes", "README.md") == "README.md: its name does not end in .csv"


def test_good_lines_of_a_bad_file_count() -> None:
    found = unite([("a.csv", b"source,label\na,cat\nb\nc,dog\n")])
    assert found.of == {"a": "cat", "c": "dog"}
    assert found.rows == {"a.csv": 2}
    assert [each.line for each in found.problems] == [3]


def test_a_source_with_two_labels_has_none() -> None:
    files = [("a.csv", b"source,label\na,cat\nb,cat\na,cat\n"), ("b.csv", b"source,label\na,dog\na,ape\nc,dog\n")]
    assert unite(files) == SourceLabels(
        {"b": "cat", "c": "dog"}, {"a": ["ape", "cat", "dog"]}, {"a.csv": 3, "b.csv": 3}, []
    )


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.dictionaries(TEXT, TEXT.map(str.strip).filter(bool), max_size=6))
def test_what_is_written_is_read_back(of: dict[str, str]) -> None:
    assert labels(format_csv(LabelRow(*each) for each in of.items())) == of


def test_folders_are_labels_where_they_can_be() -> None:
    sources = ["a/x/1.jpg", "b.zip/y/2.jpg", "3.jpg", "z /4.jpg", "\udce9/5", "a/x/1.jpg"]
    assert [*from_folders(sources)] == [("a/x/1.jpg", "x"), ("b.zip/y/2.jpg", "y"), ("z /4.jpg", "z")]
