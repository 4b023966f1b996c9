"""The arguments that name pictures at URLs, and the names that these get."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from pipelines.library.remote.picture_urls import is_remote
from stages.record.pfs_names import escape_path, unescape
from stages.record.url_names import name_of


def test_urls_and_lists_are_remote(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    assert all(map(is_remote, ("https://x.org", "S3://b/c", "gs://b", "az://b/c", str(tmp_path / "a.csv"))))
    assert not any(map(is_remote, ("a.jpg", "ftp://x.org/a.jpg", "https", str(tmp_path), str(tmp_path / "no.csv"))))


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://x.org/", "x.org/index"),
        ("https://x.org:8443/a//b.jpg", "x.org/a/b.jpg"),
        ("https://x.org/../../%2e%2e/b.jpg#part", "x.org/b.jpg"),
        ("https://x.org/%E9.jpg", "x.org/\udce9.jpg"),
    ],
)
def test_a_name_is_the_host_and_the_path(url: str, name: str) -> None:
    assert name_of(url) == name


def test_queries_tell_pictures_apart() -> None:
    names = [name_of(f"https://x.org/a.jpg?n={number}") for number in range(50)]
    assert len({*names, name_of("https://x.org/a.jpg")}) == 51
    assert all(each.startswith("x.org/a-") and each.endswith(".jpg") for each in names)


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_any_name_can_be_stored(text: str) -> None:
    name = name_of(f"https://x.org/{text}")
    assert unescape(escape_path(name)) == name
    assert not {"", ".", ".."}.intersection(name.split("/"))
