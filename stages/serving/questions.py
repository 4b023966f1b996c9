"""Questions as they are asked over HTTP: their fields, their JSON, and the sentence for each that is not valid."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stages.knn.settings import LARGEST_K
from stages.serving.failures import Refusal, bad
from stages.serving.globs import LONGEST

MOST_PICTURES = 16
"""Pictures of one question."""

MOST_REQUESTS = 64
"""Questions of one request."""

MOST_NEIGHBOURS = 10_000
"""Neighbours that one request may ask for in all."""

DEFAULT_K = 12

_DEEPEST = 16
"""Levels of JSON: questions have five."""

Model = TypeVar("Model", bound=BaseModel)

Share = Annotated[float, Field(ge=0, le=1)]
Id = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Url = Annotated[str, Field(min_length=1, max_length=4096)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class AskedPicture(_Strict):
    """A picture to search for: the number of an uploaded file, a URL, or the id of a library picture."""

    upload: Annotated[int, Field(ge=0, lt=MOST_PICTURES)] | None = None
    url: Url | None = None
    id: Id | None = None
    box: Annotated[list[Share], Field(min_length=4, max_length=4)] | None = None

    @property
    def region(self) -> tuple[float, float, float, float] | None:
        """The region that is asked about, None for the whole picture."""
        if self.box is None or self.box == [0, 0, 1, 1]:
            return None
        left, top, right, bottom = self.box
        return left, top, right, bottom


class Question(_Strict):
    """One search. With several pictures the nearest to any of them, or to all, by the farthest."""

    pictures: Annotated[list[AskedPicture], Field(max_length=MOST_PICTURES)] = []
    id: Id | None = None
    url: Url | None = None
    box: Annotated[list[Share], Field(min_length=4, max_length=4)] | None = None
    combine: Literal["any", "all"] = "any"
    k: Annotated[int, Field(ge=1, le=LARGEST_K)] | None = None
    metric: Literal["euclidean", "cosine"] | None = None
    filter: Annotated[str, Field(max_length=LONGEST)] = ""
    max_distance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    exact: bool | None = None

    def asked(self, uploads: int) -> Sequence[AskedPicture]:
        """The pictures, with the short forms written out. uploads: the number of files that came with the question.
        Raises Refusal for none, too many, or any that is not there."""
        short = [AskedPicture(id=self.id, box=self.box)] if self.id else []
        short += [AskedPicture(url=self.url, box=self.box)] if self.url else []
        if not short and not self.pictures and uploads:
            short = [AskedPicture(upload=number, box=self.box) for number in range(uploads)]
        elif self.box is not None and not short:
            raise bad("box belongs to a picture: write it beside its upload, url or id")
        found = [*self.pictures, *short]
        if not found:
            raise bad("there is no picture to search for: upload one, or name its url or id")
        if len(found) > MOST_PICTURES:
            raise bad(f"{len(found)} pictures: ask about at most {MOST_PICTURES} in one question")
        for each in found:
            _check(each, uploads)
        return found


class Questions(_Strict):
    """Several searches in one call."""

    requests: Annotated[list[Question], Field(min_length=1, max_length=MOST_REQUESTS)]


def from_json(content: bytes) -> tuple[list[Question], bool]:
    """The questions in a body of JSON, and whether they are several. Raises Refusal."""
    value = parsed(content)
    if isinstance(value, Mapping) and "requests" in value:
        several = _validated(Questions, value).requests
        wanted = sum(each.k or DEFAULT_K for each in several)
        if wanted > MOST_NEIGHBOURS:
            raise bad(f"{wanted:,} neighbours in all: ask for at most {MOST_NEIGHBOURS:,} in one request")
        return several, True
    return [_validated(Question, value)], False


PARAMETERS = ("box", "k", "metric", "filter", "max_distance", "exact")
"""The fields of a question beside one picture, whose body is its file."""


def from_parameters(parameters: Sequence[tuple[str, str]]) -> Question:
    """The question in the parameters of a URL. Raises Refusal."""
    value: dict[str, Any] = {}
    for name, text in parameters:
        if name not in PARAMETERS:
            raise bad(f"{name[:80]} is not a parameter of a search: they are {', '.join(PARAMETERS)}")
        if name in value:
            raise bad(f"{name} is given twice")
        value[name] = _READ.get(name, str)(text)
    return _validated(Question, value)


def parsed(content: bytes) -> Any:
    """JSON, strictly: no name twice, no NaN, not too deep. Raises Refusal."""
    try:
        value = json.loads(content.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise bad("the JSON is not UTF-8") from error
    except RecursionError as error:
        raise bad("the JSON is nested too deeply") from error
    except ValueError as error:
        raise bad(f"this is not valid JSON: {error}") from error
    if _depth(value) > _DEEPEST:
        raise bad("the JSON is nested too deeply")
    return value


def _validated(model: type[Model], value: Any) -> Model:
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
    return bad(f"{words[:300]}{f' (and {others} more)' if others else ''}")


def _check(picture: AskedPicture, uploads: int) -> None:
    given = [name for name in ("upload", "url", "id") if getattr(picture, name) is not None]
    if len(given) != 1:
        raise bad("a picture needs one of upload, url and id")
    if picture.upload is not None and picture.upload >= uploads:
        raise bad(f"upload {picture.upload} is not there: {uploads} files came with the request, counted from 0")
    if picture.box is not None and not (picture.box[0] < picture.box[2] and picture.box[1] < picture.box[3]):
        raise bad("box must be [left, top, right, bottom], with left before right and top above bottom")
    if picture.id is not None and picture.region is not None:
        raise bad("the region of a library picture cannot be asked for by id: upload the picture, or name its url")


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


_READ = {"k": _whole, "max_distance": _number, "exact": _truth, "box": _numbers}
"""The parameters of a URL that are not texts."""
