"""Lists of pictures by URL, as people have them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import LookalikeError
from pipelines.library.remote.picture_lists import ListProblem, of_list
from pipelines.library.remote.picture_urls import PictureUrl


def written(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_a_text_has_a_url_in_each_line(tmp_path: Path) -> None:
    listed = written(tmp_path / "a.txt", "\ufeffhttps://x.org/a.jpg\r\n\n# no\n  s3://b/c%20d.png \nhallo\n")
    assert list(of_list(listed)) == [
        PictureUrl("https://x.org/a.jpg", "x.org/a.jpg"),
        PictureUrl("s3://b/c%20d.png", "b/c d.png"),
        ListProblem("a.txt, line 3", "'hallo' is not a URL"),
    ]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_columns_of_csv_are_what_is_known(tmp_path: Path, separator: str) -> None:
    rows = [["Path", "Image_URL", "owner"], ["/../one.jpg", "https://x.org/1", "Ann"], ["", "https://x.org/2.jpg", ""]]
    listed = written(
        tmp_path / "a.csv", "\ufeff" + "\n".join(separator.join(row) for row in rows) + f"\n{separator * 2}\n"
    )
    assert list(of_list(listed)) == [
        PictureUrl("https://x.org/1", "one.jpg", {"owner": "Ann"}),
        PictureUrl("https://x.org/2.jpg", "x.org/2.jpg"),
        ListProblem("a.csv, line 3", "it has no URL"),
    ]


def test_parquet_keeps_the_types(tmp_path: Path) -> None:
    table = pa.table({"url": ["https://x.org/1.jpg", None], "name": ["n.jpg", "m.jpg"], "stars": pa.array([5, None])})
    pq.write_table(table, tmp_path / "a.parquet")
    assert list(of_list(tmp_path / "a.parquet")) == [
        PictureUrl("https://x.org/1.jpg", "n.jpg", {"stars": 5}),
        ListProblem("a.parquet, row 2", "it has no URL"),
    ]


def test_parquet_may_hold_the_pictures_themselves(tmp_path: Path) -> None:
    images = [
        {"bytes": b"one", "path": "a.png"},
        {"bytes": b"two", "path": None},
        {"bytes": None, "path": "c.png"},
        None,
    ]
    pq.write_table(pa.table({"image": images, "label": pa.array([1, 2, 3, 4])}), tmp_path / "train.parquet")
    assert list(of_list(tmp_path / "train.parquet")) == [
        PictureUrl("train.parquet#1", "train/a.png", {"label": 1}, b"one"),
        PictureUrl("train.parquet#2", "train/00000002", {"label": 2}, b"two"),
        ListProblem("train.parquet, row 3", "it has no URL"),
        ListProblem("train.parquet, row 4", "it has no URL"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"a,b\n1,2\n", "has no column url, so it is not a list of pictures; its columns: a, b"),
        ("a.csv", b"", "its columns: none"),
        ("a.txt", b"\xff\xfe\n", "is not UTF-8"),
        ("a.parquet", b"PAR1", "is not a Parquet file"),
        ("a.csv", b'url,a\n"https://x', "is not valid CSV"),
    ],
)
def test_what_is_no_list_is_refused(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LookalikeError, match=said):
        list(of_list(tmp_path / name))
    with pytest.raises(LookalikeError, match="cannot read"):
        list(of_list(tmp_path / f"missing-{name}"))


def test_lists_are_read_as_they_come(tmp_path: Path) -> None:
    listed = written(tmp_path / "a.csv", "url\n" + "https://x.org/1.jpg\n" * 5 + '"https://x')
    found = of_list(listed)
    assert next(found) == PictureUrl("https://x.org/1.jpg", "x.org/1.jpg")
