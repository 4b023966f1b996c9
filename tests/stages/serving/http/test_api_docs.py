"""The documentation of the API: a valid document of OpenAPI, and a page with all of its routes."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from stages.serving.answer.request_schema import SearchRequest
from stages.serving.follow.snapshots import SnapshotState
from tests.stages.serving import services


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[dict[str, Any], str]]:
    """The document and the page of a service that has no library yet."""
    with services.running(SnapshotState("loading", "bringing the index")) as service:
        yield service.ask("/openapi.json").data, service.ask("/docs").body.decode()


def within(value: Any) -> Iterator[Any]:
    """A value of JSON with all values in it."""
    yield value
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from within(each)


def resolved(document: Any, reference: str) -> Any:
    assert reference.startswith("#/")
    for name in reference.removeprefix("#/").split("/"):
        document = document[name]
    return document


def test_every_reference_leads_somewhere_and_everything_is_referred_to(asked: tuple[dict[str, Any], str]) -> None:
    document, _ = asked
    references = {each["$ref"] for each in within(document) if isinstance(each, dict) and "$ref" in each}
    assert "#/components/schemas/PictureReference" in references
    for reference in references:
        assert isinstance(resolved(document, reference), dict)
    held = {f"#/components/{kind}/{name}" for kind, some in document["components"].items() for name in some}
    held -= {"#/components/securitySchemes/token"}  # named by `security`
    assert held == references
    assert not any("$defs" in each for each in within(document) if isinstance(each, dict))


def test_the_document_has_what_openapi_demands(asked: tuple[dict[str, Any], str]) -> None:
    document, _ = asked
    assert document["openapi"].startswith("3.1.")
    assert document["info"] == {"title": "lookalike", "version": "2"}
    methods = [each for some in document["paths"].values() for each in some.values()]
    names = [each["operationId"] for each in methods]
    assert len(set(names)) == len(names)
    assert {"getStatus", "postSearch", "getImages", "getPreviews", "postPreviews", "getZip", "postZip"} < set(names)
    assert document["security"] == [{}, {"token": []}]
    for path, some in document["paths"].items():
        for method in some.values():
            assert method["description"] and method["responses"]
            assert all("description" in each or "$ref" in each for each in method["responses"].values())
            assert "422" not in method["responses"]
            parameters = {(each["name"], each["in"]) for each in method.get("parameters", [])}
            assert len(parameters) == len(method.get("parameters", []))
            assert {name for name, place in parameters if place == "path"} == {*re.findall("{([a-z]+)}", path)}


def test_a_search_is_described_field_by_field(asked: tuple[dict[str, Any], str]) -> None:
    document, _ = asked
    search = document["paths"]["/search"]["post"]
    assert set(search["requestBody"]["content"]) == {"application/json", "multipart/form-data", "image/*"}
    schema = document["components"]["schemas"]["SearchRequest"]
    assert set(schema["properties"]) == set(SearchRequest.model_fields)
    assert schema["properties"]["pictures"]["items"] == {"$ref": "#/components/schemas/PictureReference"}
    assert {each["name"] for each in search["parameters"]} == {
        *("box", "k", "metric", "filter", "where", "max_distance", "exact", "text", "without"),
    }
    assert json.dumps(document).isascii()


def test_the_page_names_every_route_and_field(asked: tuple[dict[str, Any], str]) -> None:
    document, page = asked
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in page
    for name in SearchRequest.model_fields:
        assert f"<dt><code>{name}</code></dt>" in page
    assert "<script" not in page and "style=" not in page
