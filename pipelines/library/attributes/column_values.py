"""The type of a column of values, and the values in it.

A text of a file without types may be a number, a date or a truth. One type is decided for a whole column: if nearly all
values have one, the others are mistakes, and reported; where values differ more, all are texts. Pure.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from stages.record.attribute_schema import BOOLEAN, DATE, INTEGER, NUMBER, TEXT

_INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,18})")  # 007 is no number
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?\d+,\d+")
_DATE = re.compile(r"(\d{4})([-:])(\d\d)\2(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.0+)?)?)?")
_ZONED = re.compile(rf"{_DATE.pattern}(Z|[+-]\d\d:?\d\d)")
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}
_NOT_NUMBERS = frozenset({"nan", "inf", "-inf", "infinity", "-infinity"})

_BAD = "bad"
"""The kind of a value that no column can hold; then the reason takes the place of the value."""

_NAN = "it is not a number: leave it empty where nothing is known"


class TypedValue(NamedTuple):
    """A value with its type; an empty one has none."""

    type: str
    value: Any


class ColumnProblem(NamedTuple):
    """The row of a value that does not belong into its column, and the reason."""

    row: int
    reason: str


def read_column(
    values: Sequence[Any], has_types: bool, decimal_comma: bool = False, wanted: str = ""
) -> tuple[str, list[Any], list[ColumnProblem]]:
    """The type of n values, the values, None where there is none, and the problems. wanted: the type to take them as,
    "" to decide it; a column without any value is text."""
    read = [_read(value, has_types and wanted in ("", TEXT), decimal_comma) for value in values]
    type = wanted or _decided(read)
    taken: list[Any] = []
    problems = []
    for row, (each, given) in enumerate(zip(read, values, strict=True)):
        value, reason = _taken(each, given, type)
        taken.append(value)
        if reason:
            problems.append(ColumnProblem(row, reason))
    return type, taken, problems


def _decided(read: Sequence[TypedValue]) -> str:
    found = Counter(NUMBER if each.type == INTEGER else each.type for each in read if each.type)
    if not found:
        return TEXT
    type, count = found.most_common(1)[0]
    if type == _BAD:
        zoned = any(each.value == _ZONE for each in read)
        type = next((other for other, _ in found.most_common(2)[1:]), DATE if zoned else NUMBER)
    elif 2 * count <= found.total():
        return TEXT
    return INTEGER if type == NUMBER and not any(each.type == NUMBER for each in read) else type


def _taken(each: TypedValue, given: Any, type: str) -> tuple[Any, str]:
    """A value in a column of this type, and the reason if it does not belong there."""
    if each.type == _BAD and (type != TEXT or not isinstance(given, str)):
        return None, f"{_shown(given)}: {each.value}"
    if not each.type:
        return None, ""
    if type == TEXT:
        text = given.strip() if isinstance(given, str) else str(given)
        return (None, "it is not valid text") if _is_broken(text) else (text, "")
    if each.type == type:
        return each.value, ""
    if (each.type, type) == (INTEGER, NUMBER) and float(each.value) == each.value:
        return float(each.value), ""
    most = f"{_shown(given)} is not of the type {type}, as most values of the column are"
    return None, f"{most}: correct it, or take all of them as text with --type COLUMN=text"


def _shown(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _is_broken(text: str) -> bool:
    return any("\ud800" <= each <= "\udfff" for each in text)


def _read(value: Any, has_types: bool, decimal_comma: bool) -> TypedValue:
    match value:
        case None | "":
            return TypedValue("", None)
        case bool():
            return TypedValue(BOOLEAN, value)
        case int():
            return TypedValue(INTEGER, value) if -(2**63) <= value < 2**63 else TypedValue(_BAD, "it is too large")
        case float() | Decimal():
            return TypedValue(NUMBER, float(value)) if math.isfinite(value) else TypedValue(_BAD, _NAN)
        case datetime():
            if value.tzinfo is not None:
                return TypedValue(_BAD, _ZONE)
            return TypedValue(DATE, value) if not value.microsecond else TypedValue(_BAD, "it has parts of seconds")
        case date():
            return TypedValue(DATE, datetime(value.year, value.month, value.day))
        case str():
            return _of_text(value.strip(), has_types, decimal_comma)
    return TypedValue(_BAD, "it is a list or an object; leave the column out with --type COLUMN=none")


_ZONE = "it has a time zone: write local time without one, or take the column as text with --type COLUMN=text"


def _of_text(text: str, has_types: bool, decimal_comma: bool) -> TypedValue:
    if not text:
        return TypedValue("", None)
    if _ZONED.fullmatch(text):
        return TypedValue(_BAD, _ZONE)
    if found := _DATE.fullmatch(text):
        year, month, day, hour, minute, second = (int(found[each] or 0) for each in (1, 3, 4, 5, 6, 7))
        try:
            return TypedValue(DATE, datetime(year, month, day, hour, minute, second))
        except ValueError:
            return TypedValue(TEXT, text)
    if has_types:
        return TypedValue(TEXT, text)
    if text.lower() in _TRUTHS:
        return TypedValue(BOOLEAN, _TRUTHS[text.lower()])
    if text.lower() in _NOT_NUMBERS:
        return TypedValue(_BAD, _NAN)
    if _INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return TypedValue(INTEGER, int(text))
    plain = text.replace(",", ".") if decimal_comma and _COMMA.fullmatch(text) else text
    if _NUMBER.fullmatch(plain) and any(each.isdigit() for each in plain) and math.isfinite(float(plain)):
        return TypedValue(NUMBER, float(plain))
    return TypedValue(TEXT, text)
