"""The documentation of the API: the schema of questions for OpenAPI, and a page with all routes, without scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

from stages.serving.answer.request_schema import MOST_REQUESTS
from stages.serving.http.request_parser import CLASSIFY, SEARCH, RequestParser
from stages.serving.http.response_models import RefusalBody

_SCHEMAS = "#/components/schemas/"
FILE = {"type": "string", "format": "binary"}


REFUSED: dict[int | str, dict[str, Any]] = {
    status: {"model": RefusalBody, "description": "the reason"} for status in ("4XX", "5XX")
}
"""The responses that every route may have instead of its own."""

JPEG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/jpeg": {"schema": FILE}}}}
"""The response of a route with a JPEG file."""

BYTES: dict[int | str, dict[str, Any]] = {200: {"content": {"*/*": {"schema": FILE}}}}
"""The response of a route with a file of any kind."""

_SECURITY = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
"""The token, which only some services ask for."""

_ASKED: Mapping[str, RequestParser[Any]] = {"/search": SEARCH, "/classify": CLASSIFY}


def operation_id(route: APIRoute) -> str:
    """The name of a route for generated clients: postSearch, getImages. A route has one method."""
    words = [each for each in re.split(r"[/_-]", route.path_format) if each and "{" not in each]
    return min(route.methods or ()).lower() + "".join(each[0].upper() + each[1:] for each in words)


def request_openapi(form: RequestParser[Any]) -> dict[str, Any]:
    """What FastAPI cannot see of a route that takes questions of a form."""
    one = {"$ref": f"{_SCHEMAS}{form.one.__name__}"}
    requests = {"type": "array", "items": one, "minItems": 1, "maxItems": MOST_REQUESTS}
    question = {"oneOf": [one, {"type": "object", "properties": {"requests": requests}, "required": ["requests"]}]}
    return {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": question},
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "properties": {"request": question, "picture": {"type": "array", "items": FILE}},
                    },
                    "encoding": {"request": {"contentType": "application/json"}},
                },
                "image/*": {"schema": FILE},
            },
        },
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": False,
                "schema": schema,
                "explode": False,
                "description": "beside a picture alone",
            }
            for name, schema in form.one.model_json_schema()["properties"].items()
            if name in form.parameters
        ],
    }


def document(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """What FastAPI has found of the application, with what it cannot see."""
    _, models = models_json_schema(
        [(form.one, "validation") for path, form in _ASKED.items() if path in found["paths"]],
        ref_template=_SCHEMAS + "{model}",
    )
    schemas = {**found.get("components", {}).get("schemas", {}), **models["$defs"]}
    return {**found, "components": {"schemas": schemas, **_SECURITY}, "security": [{}, {"token": []}]}


def page(document: Mapping[str, Any]) -> str:
    """The routes in HTML."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8"><title>lookalike: the API</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield '<link rel="stylesheet" href="/assets/base.css"></head><body><main class="document">'
    yield "<h1>lookalike over HTTP</h1>"
    yield '<p>Errors are <code>{"error": {"code", "message", "pictures"}}</code>. For programs: '
    yield '<a href="/openapi.json">openapi.json</a>.</p>'
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            yield f"<h2><code>{escape(method.upper())} {escape(path)}</code></h2>"
            yield f"<p>{escape(' '.join(route.get('description', '').split()))}</p>"
            yield from _parameters(route.get("parameters", []))
            if path in _ASKED:
                yield from _question(_ASKED[path])
    yield "</main></body></html>"


def _parameters(parameters: list[Mapping[str, Any]]) -> Iterator[str]:
    if parameters:
        yield "<dl>"
        for each in parameters:
            default = each.get("schema", {}).get("default")
            words = "" if default in (None, "") else f", by default {default}"
            yield f"<dt><code>{escape(each['name'])}</code></dt><dd>in the {escape(each['in'])}{escape(words)}</dd>"
        yield "</dl>"


def _question(form: RequestParser[Any]) -> Iterator[str]:
    yield "<p>A question in JSON, beside files in a form, or as parameters of the URL beside one picture:</p><dl>"
    for name, field in form.one.model_fields.items():
        yield f"<dt><code>{escape(name)}</code></dt><dd>{escape(field.description or '')}</dd>"
    yield '</dl><p>Several: <code>{"requests": […]}</code>, answered by <code>{"answers": […]}</code>.</p>'
