"""Messages as protojson, and the subset of jq by which clients filter them: comparisons of fields, joined by `and`,
`or` and parentheses. Knows no message by name.

pachctl sends `.state == "JOB_FAILURE" or .state == "JOB_KILLED"`. A filter outside this grammar is refused:
    filter := all ("or" all)* ; all := test ("and" test)* ; test := value (("==" | "!=") value)?
    value := "." | ("." name)+ | string | number | "true" | "false" | "null" | "(" filter ")"
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from localpachd.errors import PachError

ValueGetter = Callable[[Mapping[str, object]], object]

_TOKEN = re.compile(
    r"""\s*(?:(?P<path>(?:\.[A-Za-z_]\w*)+|\.)
           |(?P<string>"(?:[^"\\]|\\.)*")
           |(?P<number>-?\d+(?:\.\d+)?)
           |(?P<word>[A-Za-z_]\w*)
           |(?P<mark>==|!=|[()]))""",
    re.VERBOSE,
)
_END = re.compile(r"\s*\Z")
_WORDS = {"true": True, "false": False, "null": None}


def compile_filter(text: str) -> Callable[[Mapping[str, object]], bool]:
    """A test of protojson mappings (snake_case names, enums by name). An empty text lets everything pass."""
    if not text.strip():
        return lambda message: True
    parser = _Parser(text)
    try:
        value = parser.any_of()
    except RecursionError:
        raise parser.refusal() from None
    if parser.kind != "end":
        raise parser.refusal()
    return lambda message: _holds(value(message))


class _Parser:
    """Recursive descent over the tokens of one filter; `kind` and `token` belong to the next token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.kind, self.token = "", ""
        self.advance()

    def advance(self) -> None:
        if _END.match(self.text, self.position):
            self.kind, self.token = "end", ""
            return
        match = _TOKEN.match(self.text, self.position)
        if match is None or match.lastgroup is None:
            raise self.refusal()
        self.position = match.end()
        self.kind, self.token = match.lastgroup, match[match.lastgroup]

    def refusal(self) -> PachError:
        return PachError(
            f"error creating message filter function: error parsing jq filter: {self.text!r} is not supported near "
            f"position {self.position}; localpachd compares fields with == and !=, joined by and, or and parentheses"
        )

    def any_of(self) -> ValueGetter:
        return self._joined("or", self.all_of, any)

    def all_of(self) -> ValueGetter:
        return self._joined("and", self.test, all)

    def _joined(
        self, word: str, part: Callable[[], ValueGetter], judge: Callable[[Iterator[bool]], bool]
    ) -> ValueGetter:
        parts = [part()]
        while self.token == word:
            self.advance()
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        return lambda message: judge(_holds(each(message)) for each in parts)

    def test(self) -> ValueGetter:
        left = self.value()
        if self.token not in ("==", "!="):
            return left
        wanted = self.token == "=="
        self.advance()
        right = self.value()
        return lambda message: (left(message) == right(message)) is wanted

    def value(self) -> ValueGetter:
        kind, token = self.kind, self.token
        if token == "(":
            self.advance()
            inner = self.any_of()
            if self.token != ")":
                raise self.refusal()
            self.advance()
            return inner
        if kind not in ("path", "string", "number") and token not in _WORDS:
            raise self.refusal()
        self.advance()
        if kind == "path":
            return _field(tuple(token.split(".")[1:]) if token != "." else ())
        constant = self.constant(kind, token)
        return lambda message: constant

    def constant(self, kind: str, token: str) -> object:
        if kind == "word":
            return _WORDS[token]
        if kind == "number":
            return float(token)
        try:
            return json.loads(token, strict=False)
        except ValueError:
            raise self.refusal() from None


def _field(names: tuple[str, ...]) -> ValueGetter:
    def value(message: Mapping[str, object]) -> object:
        found: object = message
        for name in names:
            if found is None:
                return None
            if not isinstance(found, Mapping):
                raise PachError(f"error applying jq filter on proto message: .{name} of a value that has no fields")
            found = found.get(name)
        return found

    return value


def _holds(value: object) -> bool:
    # In jq everything but null and false is true, 0 and "" included.
    return value is not None and value is not False


def as_mapping(message: Message) -> dict[str, Any]:
    """A message as protojson with names in snake_case."""
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def as_json(message: Message) -> dict[str, Any]:
    """A message as protojson with names in lowerCamelCase, as specifications are written."""
    return json_format.MessageToDict(message)


def message_filter(jq: str) -> Callable[[Message], bool]:
    """The test of messages that a request's jqFilter asks for. It reads them as `pachctl ... --raw` prints them."""
    if not jq.strip():
        return lambda message: True
    passes = compile_filter(jq)
    return lambda message: passes(as_mapping(message))
