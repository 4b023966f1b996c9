"""A filter by attributes on columns of known kinds: checked once, in words, and then a mask of any table with them.

What is not known makes a condition not known, as in SQL, and a file with such a condition is not found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.files.tables.parquet import stored_text
from stages.filters import column_operations as operations
from stages.filters.attribute_table import BUILT_IN, SECONDS, Attribute, AttributeTable, Kind, unknown_column
from stages.filters.where_parser import ColumnName, Constant, Operation, WhereError, WhereNode, parse
from stages.knn.backend import Mask

_AT_ONCE = 1 << 14
"""Files for which texts are joined at once: || of them can take much memory."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?")
_MOST_DIGITS = 15

_KINDS: Mapping[str, str] = {
    "text": "a text",
    "number": "a number",
    "boolean": "true or false",
    "date": "a date",
    "nothing": "NULL",
}


@dataclass(frozen=True)
class _Term:
    """A part of a filter. kind: of its values, "nothing" for those that are all null. value: of the files of a table,
    an array of Arrow's, or a scalar. said: as people know it. constant: the scalar, where it is known without files."""

    kind: Kind | Literal["nothing"]
    value: Callable[[AttributeTable, slice], Any]
    said: str
    constant: Any = None


class WhereClause:
    """A filter by attributes, ready for tables with the columns that it was checked against. unknown: the columns that
    it names and that these lack."""

    def __init__(self, condition: _Term, unknown: frozenset[str], joins: bool) -> None:
        self._condition = condition
        self.unknown = unknown
        self._at_once = _AT_ONCE if joins else 0

    def files(self, table: AttributeTable) -> Mask:
        """The files that have these attributes, bool (m,)."""
        step = self._at_once or max(1, len(table))
        parts = [slice(first, min(first + step, len(table))) for first in range(0, max(1, len(table)), step)]
        return np.concatenate([_mask(self._condition.value(table, part), part) for part in parts])

    def mask(self, table: AttributeTable) -> Mask:
        """The pictures with such a file, bool (n,)."""
        return table.pictures_of(self.files(table))


def parse_where(text: str, columns: Mapping[str, Attribute], *, lenient: bool = False) -> WhereClause:
    """The filter in a text. columns: by name. lenient: a column that is not there is null everywhere, as for a segment
    without any value of it. Raises WhereError, in one sentence."""
    binder = _Binder(columns, lenient)
    condition = binder.condition(parse(text))
    return WhereClause(condition, frozenset(binder.unknown), binder.joins)


def check_where(text: str) -> None:
    """Refuses a filter that is not valid in any library, whatever people say of its pictures. Raises WhereError."""
    parse_where(text, BUILT_IN, lenient=True)


class _Binder:
    """Gives each part of a filter its kind, or refuses it."""

    def __init__(self, columns: Mapping[str, Attribute], lenient: bool) -> None:
        self._columns = columns
        self._lenient = lenient
        self.unknown: set[str] = set()
        self.joins = False

    def condition(self, node: WhereNode) -> _Term:
        term = self.term(node)
        if term.kind not in ("boolean", "nothing"):
            raise WhereError(f"{term.said} is {_KINDS[term.kind]}, not a condition: compare it, as in width > 1000")
        return term if term.kind == "boolean" else _null("boolean", term.said)

    def term(self, node: WhereNode) -> _Term:
        if isinstance(node, ColumnName):
            return self._column(node)
        return _constant(node.value) if isinstance(node, Constant) else self._operation(node)

    def _column(self, node: ColumnName) -> _Term:
        name = node.name
        if name in self._columns:
            return _Term(self._columns[name].kind, lambda table, part: _part(table.column(name), part), name)
        if self._lenient:
            self.unknown.add(name)
            return _null("nothing", name)
        raise WhereError(unknown_column(name, self._columns))

    def _operation(self, node: Operation) -> _Term:
        name = node.name
        if name in ("and", "or", "not"):
            return _logical(name, [self.condition(each) for each in node.operands])
        first, *others = (self.term(each) for each in node.operands)
        if name == "is":
            return _is(first, others[0])
        if name == "in":
            return _in(first, others)
        if name == "between":
            low, high = (_compared(sign, first, each) for sign, each in zip((">=", "<="), others, strict=True))
            return _logical("and", [low, high])
        if name in ("like", "ilike"):
            return _like(name, first, *others)
        if name in ("=", "<>", "<", "<=", ">", ">="):
            return _compared(name, first, others[0])
        self.joins |= name == "||"
        return _calculated(name, [first, *others])


def _logical(name: str, conditions: list[_Term]) -> _Term:
    if name == "not":
        return _applied("boolean", pc.invert, conditions, "NOT")
    both = pc.and_kleene if name == "and" else pc.or_kleene
    return _applied("boolean", lambda *given: reduce(both, given), conditions, name.upper())


def _is(first: _Term, constant: _Term) -> _Term:
    said = f"{first.said} IS"
    if constant.kind == "nothing":
        return _applied("boolean", pc.is_null, [first], said)
    if constant.kind != "boolean" or first.kind not in ("boolean", "nothing"):
        raise WhereError(f"{said} goes with NULL, and where a column is true or false with TRUE and FALSE")
    same = _compared("=", first, constant)
    return _applied("boolean", lambda each: pc.fill_null(each, False), [same], said)


def _in(first: _Term, listed: list[_Term]) -> _Term:
    if any(each.constant is None for each in listed):
        raise WhereError(f"the values of {first.said} IN must be written out, such as IN ('a', 'b')")
    if first.kind == "nothing":
        return _null("boolean", f"{first.said} IN")
    values = [_as(first, each) for each in listed]
    for each in values:
        _check_pair(first, each)
    scalars = [each.constant for each in values]
    return _applied("boolean", lambda column: operations.within(column, scalars), [first], f"{first.said} IN")


def _like(name: str, first: _Term, pattern: _Term, escape: _Term | None = None) -> _Term:
    word = name.upper()
    _check_kind(word, "text", first)
    if pattern.kind == "nothing" or first.kind == "nothing":
        return _null("boolean", word)
    texts = [each.constant.as_py() for each in (pattern, escape) if each is not None and each.constant is not None]
    if not all(isinstance(each, str) for each in texts) or len(texts) != (1 if escape is None else 2):
        raise WhereError(f"{word} needs a text in quotes as its pattern")
    if escape is not None and len(texts[1]) != 1:
        raise WhereError("ESCAPE needs one character")
    return _applied("boolean", operations.like(*texts, ignore_case=name == "ilike"), [first], word)


def _compared(name: str, one: _Term, other: _Term) -> _Term:
    one, other = _as(other, one), _as(one, other)
    _check_pair(one, other)
    if one.kind == "boolean" and name not in ("=", "<>"):
        raise WhereError(f"{one.said} is true or false: compare it with = or <>")
    return _applied("boolean", lambda *given: operations.compare(name, *given), [one, other], name)


def _calculated(name: str, operands: list[_Term]) -> _Term:
    wanted, found = _FUNCTIONS.get(name, ("number", "number"))
    for each in operands:
        _check_kind(name, wanted, each)
    if name == "round" and len(operands) > 1:
        digits = operands[1].constant
        if digits is None or not isinstance(digits.as_py(), int) or abs(digits.as_py()) > _MOST_DIGITS:
            raise WhereError(f"round needs a whole number of digits, at most {_MOST_DIGITS}, as its second value")
    said = f"{name}({', '.join(each.said for each in operands)})" if name.isalpha() else name
    return _applied(found, lambda *given: operations.apply(name, *given), operands, said[:60])


_FUNCTIONS: Mapping[str, tuple[Kind, Kind]] = {
    **dict.fromkeys(("lower", "upper", "||"), ("text", "text")),
    **dict.fromkeys(("year", "month", "day"), ("date", "number")),
    "length": ("text", "number"),
}
"""The kinds of what a function takes and gives, if not numbers."""


def _applied(kind: Kind, function: Callable[..., Any], terms: Sequence[_Term], said: str) -> _Term:
    """A function of the values of some terms."""
    constants = [each.constant for each in terms]
    if all(each is not None for each in constants):
        return _fixed(kind, function(*constants), said)
    return _Term(kind, lambda table, part: function(*(each.value(table, part) for each in terms)), said)


def _fixed(kind: Kind | Literal["nothing"], scalar: Any, said: str) -> _Term:
    return _Term(kind, lambda *_: scalar, said, scalar)


def _constant(value: str | int | float | bool | None) -> _Term:
    if value is None:
        return _null("nothing", "NULL")
    kind: Kind = "text" if isinstance(value, str) else "boolean" if isinstance(value, bool) else "number"
    scalar = pa.scalar(stored_text(value) if isinstance(value, str) else value)
    said = repr(value)[:60] if kind != "boolean" else str(value).upper()
    return _fixed(kind, scalar, said)


def _null(kind: Kind | Literal["nothing"], said: str) -> _Term:
    return _fixed(kind, pa.scalar(None, _TYPES[kind]), said)


_TYPES = {"text": pa.string(), "number": pa.float64(), "boolean": pa.bool_(), "date": SECONDS, "nothing": pa.null()}


def _as(other: _Term, term: _Term) -> _Term:
    """A term as it is compared with another: a text as a date, NULL as a value of its kind."""
    if term.kind == "nothing":
        return _null(other.kind, term.said)
    if other.kind != "date" or term.kind != "text" or term.constant is None:
        return term
    text = str(term.constant.as_py())
    try:
        moment = datetime.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        moment = None
    if moment is None:
        raise WhereError(
            f"{other.said} is a date, and {term.said} is not: write '2024-01-31', or with a time '2024-01-31 18:30:00'"
            f", or compare a number, as in year({other.said}) = 2024"
        )
    return _fixed("date", pa.scalar(moment, SECONDS), term.said)


def _check_pair(one: _Term, other: _Term) -> None:
    if one.kind != other.kind:
        kinds = [f"{each.said} is {_KINDS[each.kind]}" for each in (one, other)]
        remedy = "texts and dates stand in single quotes, numbers do not, and year(taken) is a number"
        raise WhereError(f"{' and '.join(kinds)}: they cannot be compared; {remedy}")


def _check_kind(name: str, kind: Kind, term: _Term) -> None:
    if term.kind not in (kind, "nothing"):
        raise WhereError(f"{name} takes {_KINDS[kind]}, and {term.said} is {_KINDS[term.kind]}")


def _part(column: Any, part: slice) -> Any:
    return column if part.stop - part.start == len(column) else column.slice(part.start, part.stop - part.start)


def _mask(found: Any, part: slice) -> Mask:
    if isinstance(found, pa.Scalar):
        return np.full(part.stop - part.start, found.as_py() is True)
    whole = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    return np.asarray(whole.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)
