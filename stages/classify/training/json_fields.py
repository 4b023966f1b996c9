"""Strict JSON objects: fields with kinds, ranges and defaults; refused with the reason and the nearest name.

Only the standard library. Knows no parameter by name.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from typing import Any

FieldReader = Callable[[str, Any], Any]
"""From a field's name and its JSON value to the value; raises FieldError."""

LONGEST = 1 << 20
"""Most bytes of a file of parameters."""

_SHOWN = 40  # most characters of a value in a reason


class FieldError(Exception):
    """A value that is not what its field takes; the text is a phrase that begins with the field."""


def loads(content: bytes) -> Any:
    """The JSON value in a file, in UTF-8. Raises FieldError for anything else, for a name that an object has twice, and
    for NaN and Infinity, which are not JSON."""
    if len(content) > LONGEST:
        raise FieldError(f"it has {len(content):,} bytes; parameters have at most {LONGEST:,}")
    try:
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise FieldError(f"it is not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise FieldError("it is not valid JSON: it is not in UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise FieldError(f"it is not valid JSON: {error}") from error


def ruled(default: Any, reader: FieldReader) -> Any:
    """A field of a dataclass that `read` reads, with its default."""
    return field(default=default, metadata={"reader": reader})


def ruled_object(kind: type, or_null: bool = False) -> Any:
    """A field that holds an object with the `ruled` fields of a dataclass, with their defaults, or null."""

    def check(name: str, value: Any) -> Any:
        return None if or_null and value is None else kind(**read(value, kind, name))

    return ruled(None if or_null else kind(), check)


def read(given: Any, kind: type, within: str = "") -> dict[str, Any]:
    """The fields of an object: for each `ruled` field of a dataclass the value that is given, or the default.

    within: the name of the field that holds the object, "" for the whole file. Raises FieldError for anything that is
    not an object, and for a field without a rule, with the nearest name.
    """
    rules: dict[str, tuple[Any, FieldReader]] = {
        each.name: (each.default, each.metadata["reader"]) for each in fields(kind) if each.metadata
    }
    if not isinstance(given, dict):
        raise FieldError(f"{within or 'it'} must be an object such as {{{_example(rules)}}}; it is {shown(given)}")
    for name in given:
        if name not in rules:
            raise FieldError(f"{_path(within, name)} is not a parameter: {_meant(name, list(rules))}")
    return {
        name: reader(_path(within, name), given[name]) if name in given else default
        for name, (default, reader) in rules.items()
    }


def whole(lowest: int, highest: int) -> FieldReader:
    """A whole number of a range."""

    def check(name: str, value: Any) -> int:
        if type(value) is not int or not lowest <= value <= highest:
            raise FieldError(f"{name} must be a whole number from {lowest} to {highest}; it is {shown(value)}")
        return value

    return check


def number(lowest: float, highest: float, above: bool = False) -> FieldReader:
    """A finite number of a range, whole or not; `above`: it must not be `lowest` itself."""

    def check(name: str, value: Any) -> float:
        try:
            found = float(value) if type(value) in (int, float) else math.nan
        except OverflowError:
            found = math.inf
        if not lowest <= found <= highest or (above and found == lowest):
            begin = f"over {lowest:g} and up to" if above else f"from {lowest:g} to"
            raise FieldError(f"{name} must be a number {begin} {highest:g}; it is {shown(value)}")
        return found

    return check


def one_of(options: Sequence[str]) -> FieldReader:
    """One of several words."""

    def check(name: str, value: Any) -> str:
        if value not in options:
            near = difflib.get_close_matches(value, options, n=1, cutoff=0.5) if isinstance(value, str) else []
            meant = f"; did you mean {near[0]}?" if near else ""
            raise FieldError(f"{name} must be one of {', '.join(options)}; it is {shown(value)}{meant}")
        return str(value)

    return check


def flag(name: str, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise FieldError(f"{name} must be true or false; it is {shown(value)}")
    return value


def shown(value: Any) -> str:
    """A JSON value in a reason, cut off if it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):  # a number of more digits than Python converts
        return "a value that is too long"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise FieldError(f"{shown(name)} is there twice: remove one of the two")
        found[name] = value
    return found


def _no_constant(text: str) -> Any:
    raise FieldError(f"it holds {text}, which is not a number of JSON: every parameter is a finite number")


def _path(within: str, name: str) -> str:
    return f"{within}.{name}" if within else name


def _example(rules: Mapping[str, tuple[Any, FieldReader]]) -> str:
    name, (default, _) = next(iter(rules.items()))
    return f'"{name}": {json.dumps(default)}'


def _meant(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name.lower().replace("-", "_"), names, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"the parameters here are {', '.join(names)}"
