"""Listings as tables over HTTP. Archives need originals: see test_library_routes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.stages.serving import services
from tests.stages.serving.services import Service, made

if TYPE_CHECKING:
    from stages.backbone.embedder import Embedder


@pytest.fixture(scope="module")
def album(embedder: Embedder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service for pictures of which the files, and people, say something; one has two files, and an odd name."""
    root = tmp_path_factory.mktemp("album")
    files = {"b/one.png": made(1), "a/=two.png": made(2), "c/odd \udcff.png": made(3), "z/one again.png": made(1)}
    facts: dict[str, dict[str, Any]] = {
        "b/one.png": {"taken": "2019-08-03T16:30:00", "camera": "=Canon", "stars": 5},
        "c/odd \udcff.png": {"camera": "NIKON D750", "label": "cat"},
    }
    held = services.library(root / "index", embedder, files, facts=facts)
    snapshot = services.snapshot(held, embedder, root / "cache")
    with services.running(snapshot) as service:
        yield service


def table(service: Service, query: str) -> list[dict[str, str]]:
    """The rows of a listing's CSV."""
    answer = service.ask(f"/table?{query}")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    assert answer.headers["content-disposition"] == 'attachment; filename="pictures.csv"'
    return list(csv.DictReader(io.StringIO(answer.body.decode(), newline="")))


def test_a_listing_is_saved_in_its_order_with_all_that_is_known(album: Service) -> None:
    for query in ("", "sort=-name", "sort=-taken", "filter=z/", "where=stars=5", "where=camera%20IS%20NULL"):
        listed = album.ask(f"/pictures?{query}").data["pictures"]
        rows = table(album, query)
        assert list(dict.fromkeys(each["id"] for each in rows)) == [each["id"] for each in listed]
        firsts = {each["id"]: each["path"] for each in reversed(rows)}
        assert [firsts[each["id"]] for each in listed] == [each["path"].replace("\udcff", "\\xff") for each in listed]
    every = ["a/=two.png", "b/one.png", "c/odd \\xff.png", "z/one again.png"]  # two of one picture
    assert sorted(each["path"] for each in table(album, "")) == every
    first = table(album, "where=stars=5")[0]
    assert (first["taken"], first["camera"], first["stars"], first["label"]) == (
        "2019-08-03T16:30:00",
        "'=Canon",
        "5",
        "",
    )
    assert next(iter(first)) == "path" and [*first][-2:] == ["sha256", "id"]
    parquet = pq.read_table(io.BytesIO(album.ask("/table?format=parquet").body))
    assert parquet.column_names == list(first)
    assert sorted(map(str, parquet["label"].to_pylist())) == ["None", "None", "None", "cat"]
    assert table(album, "where=stars=7") == []


@pytest.mark.parametrize("query", ["where=starz=5", "filter={a", "sort=size", "format=xml"])
def test_a_listing_that_cannot_be_saved_is_refused(album: Service, query: str) -> None:
    code = "bad-request" if query.startswith("format") else "bad-filter"
    assert (album.ask(f"/table?{query}").status, album.ask(f"/table?{query}").code) == (400, code)
