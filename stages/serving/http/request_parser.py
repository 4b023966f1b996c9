"""The forms of questions over HTTP: in JSON, and in the parameters of a URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from stages.files.question import from_texts, parse_json, validated
from stages.serving.answer.request_schema import (
    MOST_WANTED,
    ClassifyRequest,
    PictureRequest,
    RequestBatch,
    SearchRequest,
)
from stages.serving.follow.refusals import bad_request

_RequestT = TypeVar("_RequestT", bound=PictureRequest)


@dataclass(frozen=True)
class RequestParser(Generic[_RequestT]):
    """A kind of question, and how it is asked. one, several: in a call. parameters: the fields beside one picture,
    whose body is its file. name, wants: of a question and of what it asks for, in words."""

    one: type[_RequestT]
    several: type[RequestBatch[_RequestT]]
    parameters: Sequence[str]
    name: str
    wants: str

    def from_json(self, content: bytes) -> tuple[list[_RequestT], bool]:
        """The questions in a body of JSON, and whether they are several. Raises Refusal or QuestionError."""
        value = parse_json(content)
        if isinstance(value, Mapping) and "requests" in value:
            several = validated(self.several, value).requests
            wanted = sum(each.wanted for each in several)
            if wanted > MOST_WANTED:
                raise bad_request(f"{wanted:,} {self.wants} in all: ask for at most {MOST_WANTED:,} in one request")
            return several, True
        return [validated(self.one, value)], False

    def from_parameters(self, parameters: Sequence[tuple[str, str]]) -> _RequestT:
        """The question in the parameters of a URL. Raises Refusal or QuestionError."""
        texts: dict[str, str] = {}
        for name, text in parameters:
            if name not in self.parameters:
                raise bad_request(
                    f"{name[:80]} is not a parameter of {self.name}: they are {', '.join(self.parameters)}"
                )
            if name in texts:
                raise bad_request(f"{name} is given twice")
            texts[name] = text
        return from_texts(self.one, texts)


SEARCH = RequestParser(
    SearchRequest,
    RequestBatch[SearchRequest],
    ("box", "k", "metric", "filter", "where", "max_distance", "exact", "text", "without"),
    "a search",
    "neighbours",
)
CLASSIFY = RequestParser(ClassifyRequest, RequestBatch[ClassifyRequest], ("box", "top"), "a classification", "labels")
