"""A question: everything that can be asked about pictures, beside the pictures themselves.

The command, Python, HTTP, the page's address and entries of `queries` all have these fields, with these limits and
defaults, and refuse others in the sentences of this module. Knows no pictures and no way to ask.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from stages.datum.contract import StageError
from stages.files import path_globs
from stages.knn.search_settings import LARGEST_K

DEFAULT_K = 12
"""The nearest pictures that are found for a question that does not say how many."""

LONGEST_WHERE = 8000
"""Characters of a filter by attributes."""

LONGEST_VECTOR = 65_536
"""Numbers of a vector."""

_LARGEST = 3.4e38
"""The largest number of a vector, which is float32."""

OF_ENTRIES = frozenset({"k", "filter", "where", "max_distance"})
"""The fields that the pipelines know."""

_ModelT = TypeVar("_ModelT", bound=BaseModel)


class QuestionError(StageError):
    """A question that cannot be asked; the message says why, and what can be asked instead."""


def _edges(given: Any) -> Any:
    """The edges of a box, which options and addresses separate by commas."""
    try:
        return [float(each) for each in given.split(",")] if isinstance(given, str) else given
    except ValueError as error:
        raise ValueError("input should be four numbers, such as 0.1,0.2,0.6,0.9") from error


def _ordered(box: list[float]) -> list[float]:
    if not (box[0] < box[2] and box[1] < box[3]):
        raise ValueError("it must be [left, top, right, bottom], with left before right and top above bottom")
    return box


_Edges = Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=4, max_length=4)]
BoxEdges = Annotated[_Edges, BeforeValidator(_edges, json_schema_input_type=_Edges), AfterValidator(_ordered)]
"""Left, top, right and bottom of a region, as shares of the picture's width and height."""


VectorNumber = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]


class StrictModel(BaseModel):
    """A part of a question: no other fields, and no value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Question(StrictModel):
    """One question about pictures, a vector, or both. Without a metric the index's own counts."""

    k: int = Field(default=DEFAULT_K, ge=1, le=LARGEST_K, description="The number of nearest pictures.")
    filter: str = Field(
        default="",
        max_length=path_globs.LONGEST,
        description="Only library pictures whose path begins so (holiday/), or matches a pattern (*.png).",
    )
    where: str = Field(
        default="",
        max_length=LONGEST_WHERE,
        description="Only library pictures with these attributes, as in SQL: camera LIKE 'Canon%' AND taken >= "
        "'2024-01-01'.",
    )
    metric: Literal["euclidean", "cosine"] | None = Field(
        default=None, description="The distance, if not the index's own."
    )
    box: BoxEdges | None = Field(
        default=None, description="The region of the picture to ask about, in shares from 0 to 1."
    )
    combine: Literal["any", "all"] = Field(
        default="any", description="Find what is near to any of the pictures, or to all."
    )
    max_distance: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="The largest distance of a picture that is found."
    )
    vector: list[VectorNumber] | None = Field(
        default=None,
        min_length=1,
        max_length=LONGEST_VECTOR,
        description="A vector of the index's model, to ask about beside the pictures or in their place.",
    )
    exact: bool = Field(default=True, description="False for an approximate answer, by the codes of the index.")

    @property
    def given(self) -> dict[str, Any]:
        """The fields that say something, in JSON's types."""
        said = self.model_dump(exclude_unset=True, exclude_none=True)
        return {name: value for name, value in said.items() if value != ""}

    @property
    def for_pipelines(self) -> bool:
        """Whether the pipelines can answer it, and not only a service."""
        return self.given.keys() <= OF_ENTRIES


def describe(field: str) -> str:
    """The meaning of a field in a sentence, for helps."""
    return Question.model_fields[field].description or ""


def from_json(content: bytes) -> Question:
    """A question in JSON. Raises QuestionError."""
    return validated(Question, parse_json(content))


def parse_json(content: bytes) -> Any:
    """JSON, strictly: no name twice, no NaN, not too deep. Raises QuestionError."""
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise QuestionError("the JSON is not UTF-8") from error
    except RecursionError as error:
        raise QuestionError("the JSON is nested too deeply") from error
    except ValueError as error:
        raise QuestionError(f"this is not valid JSON: {error}") from error


def validated(model: type[_ModelT], value: Any) -> _ModelT:
    """A part of a question from JSON's types. Raises QuestionError."""
    return _checked(model.model_validate, value)


def from_texts(model: type[_ModelT], texts: Mapping[str, str]) -> _ModelT:
    """The same from texts, as options and addresses have them. Raises QuestionError."""
    return _checked(model.model_validate_strings, texts)


def _checked(read: Callable[[Any], _ModelT], value: Any) -> _ModelT:
    try:
        return read(value)
    except ValidationError as error:
        raise QuestionError(_sentence(error)) from error


def _sentence(error: ValidationError) -> str:
    first, others = error.errors()[0], error.error_count() - 1
    place = ".".join(str(each) for each in first["loc"]) or "the request"
    said = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        words = f"{place} is not a field of a question"
    elif first["type"] in ("model_type", "model_attributes_type"):
        words = f"{place} must be an object of JSON"
    else:
        words = f"{place}: {said[0].lower()}{said[1:]}"
    return f"{words[:300]}{f' (and {others} more)' if others else ''}"


def _distinct(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice in an object")
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")
