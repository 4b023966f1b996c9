"""People's tables: read as they come out of spreadsheets, databases and programs, and refused with the line."""

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import LookalikeError
from pipelines.library.attributes import attribute_plan
from pipelines.library.attributes.attribute_plan import PlannedTable
from pipelines.library.attributes.picture_keys import AmbiguousKeyError, PictureKeys
from pipelines.library.attributes.sidecar_files import read_sidecars
from pipelines.library.attributes.table_files import attribute_name, read_table
from stages.files.tables.annotation_table import PATH

PICTURES = PictureKeys(["a/1.jpg", "a/2.jpg", "b/2.jpg", "top.png"])


def planned(
    path: Path,
    content: bytes | str,
    key: str = "path",
    renamed: dict[str, str] | None = None,
    wanted: dict[str, str] | None = None,
    others: dict[str, pa.Table] | None = None,
    known: dict[str, str] | None = None,
) -> PlannedTable:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    stated = read_table(path, key, renamed or {})
    return attribute_plan.plan(stated, PICTURES, others or {}, known or {}, wanted or {})


def rows(made: PlannedTable) -> dict[str, dict[str, Any]]:
    return {row.pop(PATH): row for row in made.table.to_pylist()}


def said(made: PlannedTable) -> list[str]:
    return [each.said for each in made.problems]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_table_of_a_spreadsheet_is_read(tmp_path: Path, encoding: str, separator: str, end: str) -> None:
    lines = [
        ["Path", "Taken by", "Größe", "ok?", "day", ""],
        ["a/1.jpg", "Ann", "12", "yes", "2024-02-29", ""],
        ["", "", "", "", "", ""],
        ["2.jpg".join(["a/", ""]), '"two\nlines"', "", "NO", "2024-03-01 10:00", ""],
        ["top.png", "Bob", "13", "", "", ""],
    ]
    text = end.join(separator.join(line) for line in lines) + end
    made = planned(tmp_path / "mine.csv", text.encode(encoding))
    assert said(made) == []
    assert rows(made) == {
        "a/1.jpg": {"taken_by": "Ann", "größe": 12, "ok": True, "day": datetime.datetime(2024, 2, 29)},
        "a/2.jpg": {"taken_by": "two\nlines", "größe": None, "ok": False, "day": datetime.datetime(2024, 3, 1, 10)},
        "top.png": {"taken_by": "Bob", "größe": 13, "ok": None, "day": None},
    }


def test_a_table_of_a_hundred_columns_is_read(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(100)]
    made = planned(tmp_path / "wide.csv", f"path,{','.join(names)}\ntop.png,{','.join(map(str, range(100)))}\n")
    assert rows(made) == {"top.png": {name: number for number, name in enumerate(names)}}


def test_one_type_is_decided_for_a_column(tmp_path: Path) -> None:
    table = "path;whole;some;code;mixed\na/1.jpg;1;2,5;007;red\na/2.jpg;2;3;008;4\ntop.png;;;009;\n"
    made = planned(tmp_path / "mine.csv", table)
    assert rows(made) == {
        "a/1.jpg": {"whole": 1, "some": 2.5, "code": "007", "mixed": "red"},
        "a/2.jpg": {"whole": 2, "some": 3.0, "code": "008", "mixed": "4"},
        "top.png": {"whole": None, "some": None, "code": "009", "mixed": None},
    }


def test_values_that_do_not_belong_into_a_column_are_named_with_their_lines(tmp_path: Path) -> None:
    table = (
        "path,year,share,when\na/1.jpg,2001,1.5,2024-01-01\na/2.jpg,2002,NaN,2024-01-01T10:00:00Z\n"
        "top.png,old,2,2024-01-02\n"
    )
    assert said(planned(tmp_path / "mine.csv", table)) == [
        "mine.csv, line 3: share: 'NaN': it is not a number: leave it empty where nothing is known",
        "mine.csv, line 3: when: '2024-01-01T10:00:00Z': it has a time zone: write local time without one, or take the "
        "column as text with --type when=text",
        "mine.csv, line 4: year: 'old' is not of the type integer, as most values of the column are: correct it, or "
        "take all of them as text with --type year=text",
    ]
    made = planned(tmp_path / "mine.csv", table, wanted={"year": "text", "share": "none", "when": "text"})
    assert said(made) == []
    assert rows(made)["top.png"] == {"year": "old", "when": "2024-01-02"}


def test_rows_that_name_no_picture_or_one_twice_are_named_with_their_lines(tmp_path: Path) -> None:
    table = "path,x\n./a/1.jpg,1\nnone.jpg,2\n2.jpg,3\n1.jpg,4\n,5\ntop.png,6,7\n"
    made = planned(tmp_path / "mine.csv", table)
    assert said(made) == [
        "mine.csv, line 3: no picture of the library is called none.jpg",
        "mine.csv, line 4: 2 pictures are called 2.jpg: name the folder, too, as in a/2.jpg",
        "mine.csv, line 5: it states a/1.jpg again, after line 2: leave one row for each picture",
        "mine.csv, line 6: it names no picture",
        "mine.csv, line 7: it has 3 cells, and the first line 2",
    ]
    assert [each.unknown for each in made.problems] == [True, False, False, False, False]
    assert rows(made) == {"a/1.jpg": {"x": 1}, "none.jpg": {"x": 2}}


def test_names_that_have_a_meaning_already_are_refused_with_the_remedy(tmp_path: Path) -> None:
    table = "path,Width,label\ntop.png,3,cat\n"
    label, width = said(planned(tmp_path / "mine.csv", table))
    assert width.endswith(
        "give the column another name with --rename width=my_width, or leave it out with --type width=none"
    )
    assert label.startswith("mine.csv: labels are put with `lookalike classify add --labels FILE`")
    made = planned(tmp_path / "mine.csv", table, renamed={"width": "frame"}, wanted={"label": "none"})
    assert (said(made), rows(made)) == ([], {"top.png": {"frame": 3}})


def test_tables_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    other = planned(tmp_path / "other.csv", "path,owner,year\na/1.jpg,me,2001\ntop.png,you,\n").table
    known = {"owner": "text", "year": "integer"}
    table = "path,owner,year\ntop.png,me,2.5\na/1.jpg,me,2001\n"
    assert said(planned(tmp_path / "mine.csv", table, others={"other": other}, known=known)) == [
        "mine.csv, line 2: owner of top.png is me here and you in the table other: correct one of them, or remove the "
        "other with `lookalike attributes remove other`",
    ]
    table = "path,year\ntop.png,soon\n"
    (problem,) = said(planned(tmp_path / "mine.csv", table, others={"other": other}, known=known))
    assert problem.startswith(
        "mine.csv, line 2: year is of the type integer in the tables there, and text here ('soon')"
    )
    made = planned(tmp_path / "mine.csv", "path,owner\ntop.png,7\n", known=known)
    assert (said(made), rows(made)) == ([], {"top.png": {"owner": "7"}})


def test_json_lines_have_types_of_their_own(tmp_path: Path) -> None:
    values = [
        {"file": "top.png", "code": "12", "n": 1, "when": "2024-01-01", "ok": True},
        {"file": "a/1.jpg", "n": 2.5, "when": None},
    ]
    made = planned(tmp_path / "mine.jsonl", "\n".join(map(json.dumps, values)) + "\n\n", key="file")
    assert said(made) == []
    assert rows(made) == {
        "top.png": {"code": "12", "n": 1.0, "when": datetime.datetime(2024, 1, 1), "ok": True},
        "a/1.jpg": {"code": None, "n": 2.5, "when": None, "ok": None},
    }
    text = '{"path": "top.png", "n": NaN, "tags": ["a"]}\n'
    assert said(planned(tmp_path / "mine.jsonl", text)) == [
        "mine.jsonl, line 1: n: nan: it is not a number: leave it empty where nothing is known",
        "mine.jsonl, line 1: tags: ['a']: it is a list or an object; leave the column out with --type tags=none",
    ]


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    table = pa.table(
        {
            "path": ["top.png", "a/1.jpg"],
            "n": pa.array([1, None], pa.int8()),
            "x": pa.array([1.5, float("nan")]),
            "day": pa.array([datetime.date(2024, 1, 1), None]),
            "kind": pa.array(["a", "b"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "mine.parquet")
    made = planned(tmp_path / "mine.parquet", (tmp_path / "mine.parquet").read_bytes())
    assert said(made) == ["mine.parquet, line 2: x: nan: it is not a number: leave it empty where nothing is known"]
    assert rows(made)["top.png"] == {"n": 1, "day": datetime.datetime(2024, 1, 1), "kind": "a"}


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("mine.csv", b"", "mine.csv is empty"),
        ("mine.csv", b"file,x\na,1\n", r"mine.csv has no column path: .* with --key \(file, x\)"),
        ("mine.csv", b"path\ntop.png\n", "mine.csv states nothing"),
        ("mine.csv", b"path,x\n", "mine.csv states nothing"),
        ("mine.csv", b"path,x\ntop.png,\xff\n", "mine.csv, line 2: it is not UTF-8"),
        ("mine.csv", b'path,x\ntop.png,"a\n', "mine.csv, line 2: it is not valid CSV"),
        ("mine.csv", b"path,My x,my_x\ntop.png,1,2\n", "the columns My x and my_x are both my_x"),
        ("mine.csv", b"path,,x\ntop.png,1,2\n", "column 2 has no name"),
        ("mine.jsonl", b'{"path": "a"\n', "mine.jsonl, line 1: it is not JSON"),
        ("mine.jsonl", b"[1]\n", "mine.jsonl, line 1: each line should be one object"),
        ("mine.parquet", b"PAR1", "mine.parquet is not a Parquet file"),
        ("mine.xlsx", b"PK", "mine.xlsx is not a table"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    with pytest.raises(LookalikeError, match=why):
        planned(tmp_path / name, content)


def test_pictures_are_found_by_the_end_of_their_path() -> None:
    assert [PICTURES.find(each) for each in ("a/1.jpg", "1.jpg", "/a/1.jpg", "a\\1.jpg", "1", "g")] == [
        *["a/1.jpg"] * 4,
        *["", ""],
    ]
    with pytest.raises(AmbiguousKeyError):
        PICTURES.find("2.jpg")
    assert PICTURES.beside("a/1") == PICTURES.beside("a/1.jpg") == ["a/1.jpg"]


def test_headings_become_names_that_need_no_quotes() -> None:
    names = ["Taken by", " owner ", "ISO-Wert!", "2024", "größe"]
    assert [attribute_name(each) for each in names] == ["taken_by", "owner", "iso_wert", "_2024", "größe"]


XMP = """<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmp:Rating="4"><dc:subject><rdf:Bag><rdf:li>sea</rdf:li><rdf:li>sky</rdf:li></rdf:Bag></dc:subject>
</rdf:Description></rdf:RDF></x:xmpmeta>"""


def test_sidecars_become_one_table(tmp_path: Path) -> None:
    home = tmp_path / "a"
    home.mkdir()
    (home / "1.json").write_text('{"photo": {"iso": 100, "tags": ["x", "y"]}, "faces": [{"n": 1}]}')
    (home / "2.jpg.txt").write_text("Two dogs.\n")
    (home / "1.xmp").write_text(XMP)
    (home / "package.json").write_text("{}")
    table, strangers = read_sidecars(home, PICTURES, {})
    assert (table.problems, strangers) == ([], ["package.json"])
    made = attribute_plan.plan(table, PICTURES, {}, {}, {})
    assert rows(made) == {
        "a/1.jpg": {"photo_iso": 100, "photo_tags": "x, y", "rating": "4", "subject": "sea, sky", "caption": None},
        "a/2.jpg": {**dict.fromkeys(("photo_iso", "photo_tags", "rating", "subject")), "caption": "Two dogs."},
    }
    (home / "1.txt").write_text("x" * (1 << 20) + "x")
    (home / "2.xmp").write_text('<!DOCTYPE x [<!ENTITY e "x">]>' + XMP)
    (home / "1.json").write_text('{"rating": 5}')
    told = [each.said for each in read_sidecars(home, PICTURES, {})[0].problems]
    assert told == [
        "1.txt: it cannot be read: it is larger than 1 MB",
        "2.xmp: it cannot be read: it defines entities, which XMP does not have",
        "a/1.jpg: its sidecars state 5 and '4' as rating: correct one of them",
    ]
