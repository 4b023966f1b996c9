"""JSON, read strictly: without NaN, with no name twice in one object, and with the line of each part.

Of equal names Python's own reader takes the last; protojson refuses them.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Any

from speclang.field_paths import FieldPath

__all__ = ["JSONDecodeError", "JsonDocument", "parse"]

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = json.JSONDecoder()
_SCALAR = re.compile(r"[^\s,\]}]+")
_DEEPEST = 200


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """A JSON value, and the line (from 1) on which each part of it begins: where it has a name, the line of that."""

    value: Any
    lines: Mapping[FieldPath, int]


def parse(text: str) -> JsonDocument:
    """Reads a text that holds one JSON value. Raises JSONDecodeError, which has the reason and the line."""
    reader = _JsonReader(text)
    return JsonDocument(reader.document(), reader.lines)


def _refuse(name: str) -> None:
    raise ValueError(name)


class _JsonReader:
    """Reads JSON and notes where each value, or the name before it, begins."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line_at = (0, 1)
        self.lines: dict[FieldPath, int] = {}

    def document(self) -> Any:
        value = self._value(())
        if self._peek():
            second = self._peek() in "{-"
            raise self._wrong("a second one follows, and a file holds one" if second else "something follows its end")
        return value

    def _value(self, field: FieldPath) -> Any:
        if len(field) > _DEEPEST:
            raise self._wrong("it is nested too deeply")
        here = self._peek()
        self.lines.setdefault(field, self._line())
        if here == "{":
            return self._object(field)
        if here == "[":
            return self._list(field)
        if here == '"':
            return self._string()
        found = _SCALAR.match(self._text, self._at)
        if found is None:
            raise self._wrong("a value is missing")
        try:
            value = json.loads(found[0], parse_constant=_refuse)
        except ValueError:
            raise self._wrong(f"{found[0][:40]} is not a valid value") from None
        self._at = found.end()
        return value

    def _object(self, field: FieldPath) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self._at += 1
        while self._peek() != "}":
            if self._peek() != '"':
                raise self._wrong("a name in double quotes is missing")
            line = self._line()
            name = self._string()
            if name in members:
                raise self._wrong(f"{name} given twice in one object")
            self.lines[(*field, name)] = line
            self._expect(":")
            members[name] = self._value((*field, name))
            self._separator("}")
        self._at += 1
        return members

    def _list(self, field: FieldPath) -> list[Any]:
        items: list[Any] = []
        self._at += 1
        while self._peek() != "]":
            items.append(self._value((*field, len(items))))
            self._separator("]")
        self._at += 1
        return items

    def _separator(self, end: str) -> None:
        if self._peek() == end:
            return
        self._expect(",")
        if self._peek() == end:
            raise self._wrong(f"a comma stands before the {end}")

    def _expect(self, sign: str) -> None:
        if self._peek() != sign:
            raise self._wrong(f"a {sign} is missing")
        self._at += 1

    def _string(self) -> str:
        value, self._at = _STRING.raw_decode(self._text, self._at)
        return str(value)

    def _peek(self) -> str:
        found = _SPACE.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        return self._text[self._at : self._at + 1]

    def _line(self) -> int:
        at, line = self._line_at
        self._line_at = (self._at, line + self._text.count("\n", at, self._at))
        return self._line_at[1]

    def _wrong(self, why: str) -> JSONDecodeError:
        return JSONDecodeError(why, self._text, min(self._at, len(self._text)))
