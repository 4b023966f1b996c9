"""The parts of a filter by attributes, each of one kind of values: put together by operations, which refuse in words.

Knows no syntax.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from stages.files.path_globs import FilterError
from stages.filters import column_operations
from stages.filters.attribute_table import KINDS, Kind
from stages.filters.column_operations import CALCULATIONS, COMPARISONS

DAY = re.compile(r"\d{4}-\d\d-\d\d")
MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?")
"""How dates are written: without a time zone."""

_MOST_DIGITS = 15

ColumnReader = Callable[[str], Any]
"""Gives a column by its name."""


@dataclass(frozen=True)
class FilterTerm:
    """A part of a filter. kind: of its values, "nothing" for those that are all null. said: as people know it. value:
    of some files, an array of Arrow's, or a scalar. constant: the scalar, where it is known without files."""

    kind: Kind | Literal["nothing"]
    said: str
    value: Callable[[ColumnReader], Any]
    constant: Any = None


def constant(kind: Kind | Literal["nothing"], said: str, value: Any = None) -> FilterTerm:
    """A value; None for one that is not known."""
    number = kind == "number" and isinstance(value, int)
    scalar = pa.scalar(value, pa.int64() if number else KINDS[kind].type)
    return FilterTerm(kind, said, lambda _: scalar, scalar)


def _applied(kind: Kind, said: str, function: Callable[..., Any], *terms: FilterTerm) -> FilterTerm:
    """A function of the values of some terms."""
    if all(each.constant is not None for each in terms):
        scalar = function(*(each.constant for each in terms))
        return FilterTerm(kind, said, lambda _: scalar, scalar)
    return FilterTerm(kind, said, lambda column: function(*(each.value(column) for each in terms)))


def condition(term: FilterTerm) -> FilterTerm:
    """The term as a condition. Raises FilterError for another one."""
    if term.kind not in ("boolean", "nothing"):
        raise FilterError(f"{term.said} is {KINDS[term.kind].words}, not a condition: compare it, as in width > 1000")
    return term if term.kind == "boolean" else constant("boolean", term.said)


def _logical(name: str, *terms: FilterTerm) -> FilterTerm:
    """AND, OR or NOT."""
    given = [condition(each) for each in terms]
    if name == "not":
        return _applied("boolean", "NOT", pc.invert, *given)
    both = pc.and_kleene if name == "and" else pc.or_kleene
    return _applied("boolean", name.upper(), lambda *values: reduce(both, values), *given)


def _is(_: str, first: FilterTerm, other: FilterTerm) -> FilterTerm:
    said = f"{first.said} IS"
    if other.kind == "nothing":
        return _applied("boolean", said, pc.is_null, first)
    if other.kind != "boolean" or first.kind not in ("boolean", "nothing"):
        raise FilterError(f"{said} goes with NULL, and where a column is true or false with TRUE and FALSE")
    return _applied("boolean", said, lambda each: pc.fill_null(each, False), _compared("eq", first, other))


def _in(_: str, first: FilterTerm, *listed: FilterTerm) -> FilterTerm:
    said = f"{first.said} IN"
    if any(each.constant is None for each in listed):
        raise FilterError(f"the values of {said} must be written out, such as IN ('a', 'b')")
    if first.kind == "nothing":
        return constant("boolean", said)
    scalars = [_paired(first, each)[1].constant for each in listed]
    return _applied("boolean", said, lambda column: column_operations.within(column, scalars), first)


def _between(_: str, first: FilterTerm, low: FilterTerm, high: FilterTerm) -> FilterTerm:
    return _logical("and", _compared("gte", first, low), _compared("lte", first, high))


def _like(name: str, first: FilterTerm, pattern: FilterTerm, *escape: FilterTerm) -> FilterTerm:
    word = name.upper()
    _check_kind(word, "text", first)
    if pattern.kind == "nothing" or first.kind == "nothing":
        return constant("boolean", word)
    if any(each.kind != "text" or each.constant is None for each in (pattern, *escape)):
        raise FilterError(f"{word} needs a text in quotes as its pattern")
    texts = [each.constant.as_py() for each in (pattern, *escape)]
    if escape and len(texts[1]) != 1:
        raise FilterError("ESCAPE needs one character")
    return _applied("boolean", word, column_operations.like(*texts, ignore_case=name == "ilike"), first)


def _compared(name: str, *pair: FilterTerm) -> FilterTerm:
    one, other = _paired(*pair)
    if one.kind == "boolean" and name not in ("eq", "neq"):
        raise FilterError(f"{one.said} is true or false: compare it with = or <>")
    return _applied("boolean", COMPARISONS[name].sign, COMPARISONS[name], one, other)


def _paired(one: FilterTerm, other: FilterTerm) -> tuple[FilterTerm, FilterTerm]:
    """Two terms as they are compared: a text beside a date as one, NULL as a value of the other's kind."""
    one, other = _beside(other, one), _beside(one, other)
    if one.kind != other.kind:
        kinds = [f"{each.said} is {KINDS[each.kind].words}" for each in (one, other)]
        remedy = "texts and dates stand in single quotes, numbers do not, and year(taken) is a number"
        raise FilterError(f"{' and '.join(kinds)}: they cannot be compared; {remedy}")
    return one, other


def _beside(other: FilterTerm, term: FilterTerm) -> FilterTerm:
    if term.kind == "nothing":
        return constant(other.kind, term.said)
    if other.kind == "date" and term.kind == "text" and term.constant is not None:
        return date(other.said, term, MOMENT)
    return term


def _calculated(name: str, *operands: FilterTerm) -> FilterTerm:
    function = CALCULATIONS[name]
    for each in operands:
        _check_kind(function.name, function.takes, each)
    if name == "round" and len(operands) > 1:
        digits = None if operands[1].constant is None else operands[1].constant.as_py()
        if not isinstance(digits, int) or abs(digits) > _MOST_DIGITS:
            raise FilterError(f"round needs a whole number of digits, at most {_MOST_DIGITS}, as its second value")
    said = f"{name}({', '.join(each.said for each in operands)})" if function.name == name else function.name
    return _applied(function.gives, said[:60], function, *operands)


def _check_kind(name: str, kind: Kind, term: FilterTerm) -> None:
    if term.kind not in (kind, "nothing"):
        raise FilterError(f"{name} takes {KINDS[kind].words}, and {term.said} is {KINDS[term.kind].words}")


def date(said: str, text: FilterTerm, form: re.Pattern[str]) -> FilterTerm:
    """A text in a form as a date. said: what must be one. Raises FilterError for another text."""
    written = str(text.constant.as_py())
    try:
        moment = datetime.fromisoformat(written) if form.fullmatch(written) else None
    except ValueError:
        moment = None
    if moment is None:
        raise FilterError(
            f"{said} is a date, and {text.said} is not: write '2024-01-31', or with a time '2024-01-31 18:30:00'"
            ", or compare a number, as in year(taken) = 2024"
        )
    return constant("date", text.said, moment)


OPERATIONS: Mapping[str, Callable[..., FilterTerm]] = {
    **dict.fromkeys(("and", "or", "not"), _logical),
    **dict.fromkeys(("like", "ilike"), _like),
    **dict.fromkeys(COMPARISONS, _compared),
    **dict.fromkeys(CALCULATIONS, _calculated),
    "is": _is,
    "in": _in,
    "between": _between,
}
"""What makes a term of an operation and its operands, by its name, which it takes first. "like" and "ilike" take the
pattern second and may take the escape character third. All raise FilterError."""
