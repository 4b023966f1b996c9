"""Facets, listings and places over HTTP, searches with a filter by attributes, and how OpenAPI describes them."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pytest

from stages.files.tables import annotation_table
from stages.filters.where_clause import parse_where
from stages.knn.search_settings import SearchSettings
from stages.record.sources import Source
from stages.serving.follow.snapshots import Snapshot
from stages.serving.http.response_models import FacetsBody, LibraryBody, PicturesBody, PlacesBody, SearchBody
from stages.serving.search.search_engine import SearchEngine
from tests.stages.serving import services
from tests.stages.serving.segments import ids, open_library, write_segment
from tests.stages.serving.services import Service

if TYPE_CHECKING:
    from stages.backbone.embedder import Embedder

_COUNT = 60
_CAMERAS = ("Canon EOS 5D", "Canon G7", "NIKON D3", "")


def _source(number: int) -> Source:
    taken = f"20{10 + number % 14:02}-{1 + number % 12:02}-05T10:00:00" if number % 5 else ""
    camera = _CAMERAS[number % 4]
    path = f"trip/{number % 3}/{number:02}.jpg"
    return Source(
        *(path, "5eed" * 16, 100 + number, 80, 1000 * number, taken),
        camera=camera,
        latitude=48.0 + number % 30,
        longitude=2.0,
    )


@pytest.fixture(scope="module")
def held(embedder: "Embedder", tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A library of two segments with annotations, of vectors by nobody."""
    root = tmp_path_factory.mktemp("attributes")
    vectors = np.random.default_rng(1).standard_normal((_COUNT, embedder.spec.dimension)).astype(np.float32)
    facts = {"dimension": embedder.spec.dimension, "model": embedder.spec.sha256, "image_size": 32}
    names = [*ids("2", 30), *ids("a", 30)]
    sources = {id: [_source(number)] for number, id in enumerate(names)}
    sources[names[0]] += [Source("zoo/again.jpg", "5eed" * 16, 640, 480, 9, camera="NIKON D3")]
    segments = []
    for at, name in enumerate("2a"):
        rows = slice(30 * at, 30 * at + 30)
        segments.append(write_segment(root / name, names[rows], vectors[rows], sources, facts))
        known = [_source(number) for number in range(60)[rows]]
        said = pa.table(
            {
                "path": [each.path for each in known],
                "label": [None if number % 7 == 0 else f"cat {number % 3}" for number in range(30)],
            }
        )
        if at == 0:
            said = said.append_column("rating", pa.array(list(range(30)), pa.int64()))
        annotation_table.write_annotations(said, segments[-1] / annotation_table.FILE)
    return services.snapshot(open_library(segments), embedder, root / "cache")


@pytest.fixture(scope="module")
def asked(held: Snapshot) -> Iterator[Service]:
    with services.running(held) as running:
        yield running


def _get(asked: Service, path: str, **parameters: Any) -> Any:
    answer = asked.ask(f"{path}?{urlencode(parameters)}")
    assert answer.status == 200, answer.body
    return answer.data


def test_facets_count_pictures(asked: Service) -> None:
    found = _get(asked, "/facets")
    FacetsBody.model_validate(found, strict=True)
    assert (found["pictures"], found["matching"]) == (_COUNT, _COUNT)
    facets = {each["name"]: each for each in found["facets"]}
    counts = {each["value"]: each["pictures"] for each in facets["camera"]["values"]}
    assert counts == {"NIKON D3": 16, "Canon EOS 5D": 15, "Canon G7": 15}
    assert facets["camera"]["missing"] == 15
    assert facets["taken"]["type"] == "date" and sum(each["pictures"] for each in facets["taken"]["bars"]) == 48
    assert {"name": "label", "type": "text", "of": "file"} in found["columns"]
    assert "path" not in facets and "label" in facets and "rating" in facets
    one = _get(asked, "/facets", columns="folder", where="camera LIKE 'Canon%' AND label = 'cat 1'", filter="trip/1/")
    assert [each["name"] for each in one["facets"]] == ["folder"]
    assert one["facets"][0]["values"] == [{"value": "trip/1", "pictures": one["matching"]}]


def test_both_filters_hold_for_the_same_file(asked: Service) -> None:
    assert _get(asked, "/pictures", where="camera = 'NIKON D3'", filter="zoo/")["total"] == 1
    assert _get(asked, "/pictures", where="camera = 'Canon EOS 5D'", filter="zoo/")["total"] == 0


def test_pictures_in_order_page_by_page(asked: Service) -> None:
    pages: list[Any] = []
    after: dict[str, str] = {}
    while True:
        page = _get(asked, "/pictures", sort="-taken", limit=25, where="width >= 110 AND width < 150", **after)
        PicturesBody.model_validate(page, strict=True)
        pages += page["pictures"]
        if page["after"] is None:
            break
        after = {"after": page["after"]}
    assert page["total"] == len(pages) == len({each["id"] for each in pages}) == 40
    taken = [each["sources"][0]["taken"] for each in pages]
    assert all(one >= other for one, other in pairwise(taken))
    assert all(110 <= each["sources"][0]["width"] < 150 for each in pages)
    assert pages[0]["sources"][0]["attributes"]["label"].startswith("cat")
    listed = _get(asked, "/library", folder="trip/1")
    LibraryBody.model_validate(listed, strict=True)
    assert listed["pictures"][0]["sources"][0]["attributes"]["label"].startswith("cat")


def test_places(asked: Service) -> None:
    found = _get(asked, "/places", where="latitude < 50")
    PlacesBody.model_validate(found, strict=True)
    assert sum(each["pictures"] for each in found["places"]) == found["matching"] == 4
    assert {(each["latitude"], each["pictures"]) for each in found["places"]} == {(48.0, 2), (49.0, 2)}


def test_a_search_within_attributes_has_k_pictures(asked: Service, held: Snapshot) -> None:
    where = "camera ILIKE 'canon%' AND (rating > 3 OR rating IS NULL)"
    id, k = held.library.id(1), 5
    answer = asked.search({"id": id, "k": k, "where": where})
    assert answer.status == 200
    SearchBody.model_validate(answer.data, strict=True)
    assert answer.data["where"] == where and len({each["group"] for each in answer.data["neighbors"]}) == k
    table = held.library.attributes.table
    mask = table.pictures_of(parse_where(where, table.columns).files(table))
    vectors = np.concatenate([each.vectors for each in held.library.segments]).astype(np.float64)
    distances = np.where(mask, np.sqrt(((vectors - vectors[1]) ** 2).sum(axis=1)), np.inf)
    nearest = np.argsort(distances, kind="stable")[:k]
    assert [each["id"] for each in answer.data["neighbors"]] == [held.library.id(int(row)) for row in nearest]


@pytest.mark.parametrize("path", ["/facets", "/pictures", "/places"])
def test_a_bad_filter_is_refused_in_words(asked: Service, path: str) -> None:
    for where, words in (
        ("camra = 'x'", "there is no column camra: is it camera?"),
        ("width LIKE 'a'", "LIKE takes a text, and width is a number"),
        ("random() > 0", "the filter cannot use rand()"),
        ("camera = 'x", "quotation mark without its partner"),
    ):
        answer = asked.ask(f"{path}?{urlencode({'where': where})}")
        assert (answer.status, answer.code) == (400, "bad-filter")
        assert words in answer.data["error"]["message"]
    long = asked.ask(f"{path}?{urlencode({'where': 'x' * 9000})}")
    assert long.status == 400 and "where: " in long.data["error"]["message"]


def test_bad_parameters_are_refused_in_words(asked: Service, held: Snapshot) -> None:
    for question, words in (
        ("/facets?columns=camra", "there is no column camra: is it camera?"),
        ("/pictures?sort=size", "sort is one of name, -name, taken, -taken"),
        ("/pictures?limit=0", "limit: input should be greater than or equal to 1"),
        ("/pictures?after=x", "after is not a cursor of this listing"),
    ):
        answer = asked.ask(question)
        assert answer.status == 400 and words in answer.data["error"]["message"]
    refused = asked.search({"id": held.library.id(0), "where": "seen > 3"})
    assert (refused.status, refused.code) == (400, "bad-filter")
    several = asked.search({"requests": [{"id": held.library.id(0), "where": "x"}, {"id": held.library.id(0)}]})
    assert several.data["answers"][0]["error"]["code"] == "bad-filter" and several.data["answers"][1]["neighbors"]


def test_answers_are_described_with_examples(asked: Service) -> None:
    document = asked.ask("/openapi.json").data
    for path, method, name in (
        ("/search", "post", "SearchBody"),
        ("/library", "get", "LibraryBody"),
        ("/facets", "get", "FacetsBody"),
        ("/pictures", "get", "PicturesBody"),
        ("/places", "get", "PlacesBody"),
    ):
        described = document["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
        assert {"$ref": f"#/components/schemas/{name}"} in described.get("anyOf", [described])
        assert any("examples" in each for each in document["components"]["schemas"][name]["properties"].values())


def test_an_engine_by_codes_searches_within_attributes_exactly(held: Snapshot) -> None:
    engine = SearchEngine(held.library, SearchSettings(backend="numpy"), {})
    within = held.library.attributes.pictures("width > 130", "")
    found = engine.search(held.library.vectors(np.array([3])), 7, within=within, exact=False)
    assert found.exact and within[found.topk.rows].all() and found.topk.rows.shape == (1, 7)


def test_segments_without_annotations_have_the_other_columns(held: Snapshot, tmp_path: Path) -> None:
    library = open_library([write_segment(tmp_path / "0", ids("0", 3), np.eye(3, 16, dtype=np.float32))])
    table = replace(held, library=library).library.attributes.table
    assert "label" not in table.columns and "label" not in table.facts(0, library.sources(0))[0]
