"""A filter by attributes, a text in the words of SQL's WHERE: checked once, in words, and then a mask of any table.

sqlglot reads the text. What its tree holds is taken over by an allow-list, and all else is refused by name: whatever
else it reads, this language does not have. So a filter reaches no file, no network, no clock and no setting. What is
not known makes a condition not known, as in SQL, and a file with such a condition is not found.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import TokenType, exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.parser import Parser
from sqlglot.tokens import Tokenizer

from stages.files.path_globs import FilterError
from stages.files.question import LONGEST_WHERE
from stages.files.tables.parquet import stored_text
from stages.filters.attribute_table import BUILT_IN, Attribute, AttributeTable, unknown_column
from stages.filters.filter_terms import DAY, MOMENT, OPERATIONS, FilterTerm, condition, constant, date
from stages.knn.backend import Mask

DEEPEST = 24
"""Levels of operations within operations, and of parentheses."""

MOST_LISTED = 1000
"""Values of one IN."""

_MOST = {"operations": 400, "patterns of LIKE": 16, "operators ||": 16}
"""Of one filter. A LIKE reads all texts of a column that is not all different, and || takes memory."""

_AT_ONCE = 1 << 14
"""Files for which texts are joined at once."""

_KNOWN = (
    "it knows =, <>, <, <=, >, >=, AND, OR, NOT, IN, BETWEEN, LIKE, ILIKE, IS NULL, + - * / %, ||, lower, upper, "
    "length, abs, round, year, month, day, and dates as DATE '2024-01-31'"
)

_EXAMPLE = "such as camera LIKE 'Canon%' AND taken >= '2024-01-01'"

_OPERANDS = ("this", "expression", "low", "high", "decimals", "expressions")
"""The arguments of sqlglot's nodes that are operands."""

_SILENT = ("safe", "typed", "negate")
"""Arguments that say nothing else, or that are read by themselves."""

_DATES = {exp.DType.DATE: DAY, exp.DType.TIMESTAMP: MOMENT}


class WhereClause:
    """A filter by attributes, ready for tables with the columns that it was checked against. unknown: the columns that
    it names and that these lack."""

    def __init__(self, found: FilterTerm, unknown: frozenset[str], joins: bool) -> None:
        self._condition = found
        self.unknown = unknown
        self._joins = joins

    def files(self, table: AttributeTable) -> Mask:
        """The files that have these attributes, bool (m,)."""
        step = _AT_ONCE if self._joins else max(1, len(table))
        found = np.zeros(len(table), np.bool_)
        for first in range(0, len(table), step):
            values = self._condition.value(partial(_part, table, slice(first, first + step)))
            known = pc.fill_null(values, False)
            found[first : first + step] = known.as_py() if isinstance(known, pa.Scalar) else np.asarray(known)
        return found


def _part(table: AttributeTable, part: slice, name: str) -> Any:
    return table.column(name).slice(part.start, part.stop - part.start)


def parse_where(text: str, columns: Mapping[str, Attribute], *, lenient: bool = False) -> WhereClause:
    """The filter in a text. columns: by name. lenient: a column that is not there is null everywhere, as for a segment
    without any value of it. Raises FilterError, in one sentence."""
    if len(text) > LONGEST_WHERE:
        raise FilterError(f"the filter has {len(text):,} characters; use at most {LONGEST_WHERE:,}")
    try:
        tokens = Tokenizer().tokenize(text)
        _check_tokens(tokens)
        (tree,) = Parser(error_level=ErrorLevel.RAISE, max_errors=1).parse_into(exp.Condition, tokens, text)
    except SqlglotError as error:
        raise FilterError(_place(error)) from error
    except RecursionError as error:
        raise _too_deep() from error
    if tree is None:
        raise FilterError("the filter is empty")
    reader = _TreeReader(columns, lenient)
    found = condition(reader.term(tree, 0))
    used = reader.used
    counts = (used.total(), used["like"] + used["ilike"], used["dpipe"])
    for count, (word, most) in zip(counts, _MOST.items(), strict=True):
        if count > most:
            raise FilterError(f"the filter has {count:,} {word}; use at most {most}")
    return WhereClause(found, frozenset(reader.unknown), used["dpipe"] > 0)


def check_where(text: str) -> None:
    """Refuses a filter that is not valid in any library, whatever people say of its pictures. Raises FilterError."""
    parse_where(text, BUILT_IN, lenient=True)


def _check_tokens(tokens: Iterable[Any]) -> None:
    depth = 0
    for token in tokens:
        if token.comments or token.token_type is TokenType.HINT:
            raise FilterError("the filter holds a comment: leave it out")
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth > DEEPEST:
            raise _too_deep()


class _TreeReader:
    """Takes over sqlglot's trees, with the kind of each part, or refuses them. used: the operations, by the names of
    sqlglot's nodes."""

    def __init__(self, columns: Mapping[str, Attribute], lenient: bool) -> None:
        self._columns = columns
        self._lenient = lenient
        self.unknown: set[str] = set()
        self.used = Counter[str]()

    def term(self, found: exp.Expr, depth: int) -> FilterTerm:
        if depth > DEEPEST:
            raise _too_deep()
        if isinstance(found, exp.Paren):
            return self.term(found.this, depth)  # their number is bounded by the tokens
        if isinstance(found, exp.Column) and isinstance(found.this, exp.Identifier) and set(_given(found)) == {"this"}:
            return self._column(found.name.lower())
        if isinstance(found, exp.Null | exp.Boolean | exp.Literal | exp.Cast):
            return _constant(found)
        if isinstance(found, exp.Neg) and isinstance(found.this, exp.Literal) and not found.this.is_string:
            return _number(f"-{found.this.this}")
        return self._operation(found, depth + 1)

    def _column(self, name: str) -> FilterTerm:
        if name in self._columns:
            return FilterTerm(self._columns[name].kind, name, lambda column: column(name))
        if self._lenient:
            self.unknown.add(name)
            return constant("nothing", name, None)
        raise FilterError(unknown_column(name, self._columns))

    def _operation(self, found: exp.Expr, depth: int) -> FilterTerm:
        escape = []
        if isinstance(found, exp.Escape) and isinstance(found.this, exp.Like | exp.ILike):
            escape, found = [self.term(found.expression, depth)], found.this
        if isinstance(found, exp.In) and not found.expressions:
            raise FilterError("IN needs a list of values, such as IN ('a', 'b')")
        name, given = found.key, _given(found)
        if name not in OPERATIONS:
            raise _unknown(_called(found))
        if strange := given.keys() - {*_OPERANDS, *_SILENT}:
            raise _unknown(min(strange))
        if len(given.get("expressions", ())) > MOST_LISTED:
            raise FilterError(f"IN has {len(given['expressions']):,} values; use at most {MOST_LISTED:,}")
        self.used[name] += 1
        chained = isinstance(found, exp.And | exp.Or)  # a long chain is as deep as one of two
        operands = found.flatten() if chained else found.iter_expressions()
        term = OPERATIONS[name](name, *(self.term(each, depth) for each in operands), *escape)
        return OPERATIONS["not"]("not", term) if given.get("negate") else term


def _given(found: exp.Expr) -> dict[str, Any]:
    """The arguments that say something."""
    return {
        name: value for name, value in found.args.items() if value is not None and value is not False and value != []
    }


def _constant(found: exp.Expr) -> FilterTerm:
    """A value as it is written."""
    if isinstance(found, exp.Null):
        return constant("nothing", "NULL")
    if isinstance(found, exp.Boolean):
        return constant("boolean", str(found.this).upper(), bool(found.this))
    if isinstance(found, exp.Literal):
        text = found.this
        return constant("text", repr(text)[:60], stored_text(text)) if found.is_string else _number(text)
    literal, to = found.this, found.args["to"]
    kind = to.this if type(found) is exp.Cast and set(_given(found)) == {"this", "to"} else None
    plain = set(_given(to)) == {"this"} and isinstance(literal, exp.Literal) and literal.is_string
    if not plain or kind not in _DATES:
        raise _unknown(_called(found))
    return date(kind.value, _constant(literal), _DATES[kind])


def _number(text: str) -> FilterTerm:
    """A whole number beyond 64 bits is a float."""
    digits = text.removeprefix("-")
    if digits.isdigit() and int(digits) < 1 << 63:
        return constant("number", text[:60], int(text))
    try:
        value = float(text)
    except ValueError as error:
        raise FilterError(f"{text[:60]} is not a number") from error
    if not math.isfinite(value):
        raise FilterError(f"the number {text[:60]} is too large")
    return constant("number", text[:60], value)


def _called(found: exp.Expr) -> str:
    """The name of a node, as its writer knows it."""
    if isinstance(found, exp.Anonymous):
        return f"{str(found.this)[:60]}()"
    if isinstance(found, exp.Column):
        return f"the name {'.'.join(each.name for each in found.parts)[:60]} with a point"
    return f"{found.sql_name().lower()}()" if isinstance(found, exp.Func) else type(found).__name__.upper()


def _place(error: SqlglotError) -> str:
    """Where a text is not of the language."""
    found = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    near = str(found.get("highlight") or "").strip()
    if not found:
        return "the filter has a quotation mark without its partner"
    place = f" near {near[:60]}" if near else ""
    where = "WHERE, without that word" if near.upper() == "WHERE" else "WHERE"
    return f"the filter cannot be read{place}: write it as SQL's {where}, {_EXAMPLE}"


def _unknown(name: str) -> FilterError:
    return FilterError(f"the filter cannot use {name}: {_KNOWN}")


def _too_deep() -> FilterError:
    return FilterError(f"the filter is nested too deeply; use at most {DEEPEST} levels")
