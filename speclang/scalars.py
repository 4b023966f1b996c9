"""Which JSON values protojson takes for a field that is neither a message nor an enum, and how to say so."""

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_NUMERAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_DURATION = re.compile(r"(-?[0-9]+)(?:\.[0-9]{1,9})?s")
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_LONGEST = 315_576_000_000
"""The seconds of 10,000 years, protobuf's longest duration."""


@dataclass(frozen=True, slots=True)
class ScalarKind:
    """A kind of value: what to write, as a phrase; which values protojson takes; the one that stands for nothing."""

    wanted: str
    accepts: Callable[[Any], bool]
    nothing: Any = None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(most: float) -> Callable[[Any], bool]:
    def accepts(value: Any) -> bool:
        if isinstance(value, bool) or (isinstance(value, str) and not _NUMERAL.fullmatch(value)):
            return False
        try:
            return isinstance(value, int | float | str) and abs(float(value)) <= most
        except OverflowError:
            return False

    return accepts


def _is_whole(least: int, end: int) -> Callable[[Any], bool]:
    def accepts(value: Any) -> bool:
        if isinstance(value, str):
            return _WHOLE.fullmatch(value) is not None and least <= int(value) < end
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return whole and not isinstance(value, bool) and least <= value < end

    return accepts


def _is_duration(value: Any) -> bool:
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    return found is not None and len(found[1]) < 20 and abs(int(found[1])) <= _LONGEST


def _is_timestamp(value: Any) -> bool:
    found = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    try:
        return found is not None and bool(datetime.fromisoformat(found[1]))
    except ValueError:
        return False


def _whole(bits: int, signed: bool) -> ScalarKind:
    least, end = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    return ScalarKind("a whole number", _is_whole(least, end), 0)


BOOL = ScalarKind("true or false", _is_bool, False)
TEXT = ScalarKind("text in double quotes", _is_text, "")
_BYTES = ScalarKind("text in base64", _is_text, "")
_FLOAT = ScalarKind("a number", _is_number(3.4028234663852886e38), 0)
_DOUBLE = ScalarKind("a number", _is_number(sys.float_info.max), 0)
_INT32, _INT64, _UINT32, _UINT64 = _whole(32, True), _whole(64, True), _whole(32, False), _whole(64, False)

OF_TYPE: Mapping[int, ScalarKind] = {
    1: _DOUBLE,
    2: _FLOAT,
    3: _INT64,
    4: _UINT64,
    5: _INT32,
    6: _UINT64,  # fixed64
    7: _UINT32,  # fixed32
    8: BOOL,
    9: TEXT,
    12: _BYTES,
    13: _UINT32,
    15: _INT32,  # sfixed32
    16: _INT64,  # sfixed64
    17: _INT32,  # sint32
    18: _INT64,  # sint64
}
"""By the number that descriptor.proto gives to a field's type."""

DURATION = ScalarKind('a time with its unit, such as "300s"', _is_duration)

WELL_KNOWN: Mapping[str, ScalarKind] = {
    "google.protobuf.Duration": DURATION,
    "google.protobuf.Timestamp": ScalarKind('a time such as "2026-01-31T12:00:00Z"', _is_timestamp),
    "google.protobuf.Int64Value": _INT64,
}
"""The messages that are no objects in JSON."""

LIST = "a list in square brackets"
OBJECT = "an object in braces"


def correction(wanted: str, value: Any) -> str:
    """How to write what a value of a wrong type probably meant, as a phrase; "" where that cannot be guessed."""
    if wanted == BOOL.wanted and str(value).lower() in ("true", "false", "yes", "no"):
        return f"write {'true' if str(value).lower() in ('true', 'yes') else 'false'}"
    if wanted == DURATION.wanted and _DOUBLE.accepts(value):
        return f'write "{value}s"'
    if wanted == TEXT.wanted and isinstance(value, int | float):
        return f"write {json.dumps(json.dumps(value))}"
    if wanted == LIST and isinstance(value, str):
        return f"write {json.dumps([value])}"
    return ""


def shown(value: Any) -> str:
    """A value in a message: text is shortened, objects and lists are only named."""
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 40 else f'"{value[:37]}…"'
    if value is None:
        return "null"
    return {dict: "an object", list: "a list", bool: str(value).lower()}.get(type(value), str(value))
