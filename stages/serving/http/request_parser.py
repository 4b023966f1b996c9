"""The forms of questions: their JSON, their parameters in a URL, and the sentence for each that is not valid."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from stages.serving.answer.request_schema import (
    MOST_WANTED,
    ClassifyBatch,
    ClassifyRequest,
    PictureRequest,
    SearchBatch,
    SearchRequest,
)
from stages.serving.follow.refusals import Refusal, bad_request

_DEEPEST = 16
"""Levels of JSON: questions have five."""

_ModelT = TypeVar("_ModelT", bound=BaseModel)
_RequestT = TypeVar("_RequestT", bound=PictureRequest)


@dataclass(frozen=True)
class RequestParser(Generic[_RequestT]):
    """A kind of question, and how it is asked. several: of them in one call. parameters: the fields beside one picture,
    whose body is its file. name, wants: of a question and of what it asks for, in words."""

    one: type[_RequestT]
    several: type[SearchBatch] | type[ClassifyBatch]
    parameters: Sequence[str]
    name: str
    wants: str

    def from_json(self, content: bytes) -> tuple[list[_RequestT], bool]:
        """The questions in a body of JSON, and whether they are several. Raises Refusal."""
        value = parse_json(content)
        if isinstance(value, Mapping) and "requests" in value:
            several: list[Any] = list(_validated(self.several, value).requests)
            wanted = sum(each.wanted for each in several)
            if wanted > MOST_WANTED:
                raise bad_request(f"{wanted:,} {self.wants} in all: ask for at most {MOST_WANTED:,} in one request")
            return several, True
        return [_validated(self.one, value)], False

    def from_parameters(self, parameters: Sequence[tuple[str, str]]) -> _RequestT:
        """The question in the parameters of a URL. Raises Refusal."""
        value: dict[str, Any] = {}
        for name, text in parameters:
            if name not in self.parameters:
                raise bad_request(
                    f"{name[:80]} is not a parameter of {self.name}: they are {', '.join(self.parameters)}"
                )
            if name in value:
                raise bad_request(f"{name} is given twice")
            value[name] = _READ.get(name, str)(text)
        return _validated(self.one, value)


def parse_json(content: bytes) -> Any:
    """JSON, strictly: no name twice, no NaN, not too deep. Raises Refusal."""
    try:
        value = json.loads(content.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise bad_request("the JSON is not UTF-8") from error
    except RecursionError as error:
        raise bad_request("the JSON is nested too deeply") from error
    except ValueError as error:
        raise bad_request(f"this is not valid JSON: {error}") from error
    if _depth(value) > _DEEPEST:
        raise bad_request("the JSON is nested too deeply")
    return value


def _validated(model: type[_ModelT], value: Any) -> _ModelT:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise _sentence(error) from error


def _sentence(error: ValidationError) -> Refusal:
    first, others = error.errors()[0], error.error_count() - 1
    place = ".".join(str(each) for each in first["loc"]) or "the request"
    if first["type"] == "extra_forbidden":
        words = f"{place} is not a field of a question"
    elif first["type"] in ("model_type", "model_attributes_type"):
        words = f"{place} must be an object of JSON"
    else:
        words = f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}"
    return bad_request(f"{words[:300]}{f' (and {others} more)' if others else ''}")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice in an object")
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _depth(value: Any) -> int:
    """The levels of a value, counted no further than _DEEPEST."""
    depth, level = 0, [value]
    while level and depth <= _DEEPEST:
        depth += 1
        level = [
            inner
            for each in level
            if isinstance(each, list | dict)
            for inner in (each if isinstance(each, list) else each.values())
        ]
    return depth


def _number(text: str) -> Any:
    try:
        return float(text) if math.isfinite(float(text)) else text
    except ValueError:
        return text


def _whole(text: str) -> Any:
    return int(text) if re.fullmatch("-?[0-9]{1,18}", text) else text


def _truth(text: str) -> Any:
    return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)


def _numbers(text: str) -> Any:
    return [_number(each) for each in text.split(",")]


_READ = {"k": _whole, "top": _whole, "max_distance": _number, "exact": _truth, "box": _numbers}
"""The parameters of a URL that are not texts."""

SEARCH = RequestParser(
    SearchRequest, SearchBatch, ("box", "k", "metric", "filter", "max_distance", "exact"), "a search", "neighbours"
)
CLASSIFY = RequestParser(ClassifyRequest, ClassifyBatch, ("box", "top"), "a classification", "labels")
