"""The language of filters by attributes: a text in the words of SQL's WHERE as a tree of operations on columns.

sqlglot reads the text. What its tree holds is taken over by an allow-list, and all else is refused by name: whatever
else it reads, this language does not have. So a filter reaches no file, no network, no clock and no setting. Knows no
columns.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import TokenType, exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.parser import Parser
from sqlglot.tokens import Tokenizer

from stages.files.path_globs import FilterError
from stages.files.question import LONGEST_WHERE

DEEPEST = 24
"""Levels of operations within operations, and of parentheses."""

MOST_OPERATIONS = 400
"""Operators and functions of one filter."""

MOST_LISTED = 1000
"""Values of one IN."""

MOST_PATTERNS = 16
"""LIKEs: each reads all texts of a column that is not all different."""

MOST_JOINED = 16
"""Operators || of one filter, whose texts take memory."""

_KNOWN = (
    "it knows =, <>, <, <=, >, >=, AND, OR, NOT, IN, BETWEEN, LIKE, ILIKE, IS NULL, + - * / %, ||, lower, upper, "
    "length, abs, round, year, month and day"
)

_OPERATIONS: Mapping[type[exp.Expr], str] = {
    exp.And: "and",
    exp.Or: "or",
    exp.Not: "not",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.Is: "is",
    exp.In: "in",
    exp.Between: "between",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.Neg: "negative",
    exp.DPipe: "||",
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Length: "length",
    exp.Abs: "abs",
    exp.Round: "round",
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
}

_OPERANDS = ("this", "expression", "low", "high", "decimals", "expressions")
"""The arguments of sqlglot's nodes that are operands, in their order."""

_SILENT: Mapping[type[exp.Expr], set[str]] = {
    exp.DPipe: {"safe"},
    exp.Div: {"typed", "safe"},
    exp.Like: {"negate"},
    exp.ILike: {"negate"},
}
"""Arguments that say nothing else, or that are read by themselves."""


class WhereError(FilterError):
    """A filter by attributes that cannot be used; the message says why."""


@dataclass(frozen=True)
class ColumnName:
    """A column."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A value as it is written; None for NULL. A whole number beyond 64 bits is a float."""

    value: str | int | float | bool | None


@dataclass(frozen=True)
class Operation:
    """An operator or function, by its name in SQL, in lower case ("negative" is the sign), on at least one operand.
    "like" and "ilike" have the pattern second and may have the escape character third; "is" has a constant second."""

    name: str
    operands: tuple["WhereNode", ...]


WhereNode = ColumnName | Constant | Operation


def parse(text: str) -> WhereNode:
    """The tree of a filter. Raises WhereError, in one sentence, for anything else than a condition of this language."""
    if len(text) > LONGEST_WHERE:
        raise WhereError(f"the filter has {len(text):,} characters; use at most {LONGEST_WHERE:,}")
    try:
        tokens = Tokenizer().tokenize(text)
        _check_tokens(tokens)
        (tree,) = Parser(error_level=ErrorLevel.RAISE, max_errors=1).parse_into(exp.Condition, tokens, text)
    except SqlglotError as error:
        raise WhereError(_place(error)) from error
    except RecursionError as error:
        raise _too_deep() from error
    if tree is None:
        raise WhereError("the filter is empty")
    node = _node(tree, 0)
    used = Counter(_used(node))
    for word, count, most in (
        ("operations", used.total(), MOST_OPERATIONS),
        ("patterns of LIKE", used["like"] + used["ilike"], MOST_PATTERNS),
        ("operators ||", used["||"], MOST_JOINED),
    ):
        if count > most:
            raise WhereError(f"the filter has {count:,} {word}; use at most {most}")
    return node


def _check_tokens(tokens: Iterable[Any]) -> None:
    depth = 0
    for token in tokens:
        if token.comments or token.token_type is TokenType.HINT:
            raise WhereError("the filter holds a comment: leave it out")
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth > DEEPEST:
            raise _too_deep()


def _node(found: exp.Expr, depth: int) -> WhereNode:
    if depth > DEEPEST:
        raise _too_deep()
    if isinstance(found, exp.Paren):
        return _node(found.this, depth)  # their number is bounded by the tokens
    if isinstance(found, exp.Column) and set(_given(found)) == {"this"} and isinstance(found.this, exp.Identifier):
        return ColumnName(found.name.lower())
    if isinstance(found, exp.Null):
        return Constant(None)
    if isinstance(found, exp.Boolean):
        return Constant(bool(found.this))
    if isinstance(found, exp.Literal):
        return Constant(found.this if found.is_string else _number(found.this))
    if isinstance(found, exp.Neg) and isinstance(found.this, exp.Literal) and not found.this.is_string:
        return Constant(-_number(found.this.this))
    if isinstance(found, exp.Escape) and isinstance(found.this, exp.Like | exp.ILike):
        return _like(found.this, depth, _node(found.expression, depth + 1))
    if isinstance(found, exp.Like | exp.ILike):
        return _like(found, depth)
    return _operation(found, depth)


def _like(found: exp.Expr, depth: int, *escape: WhereNode) -> WhereNode:
    plain = _operation(found, depth)
    like = Operation(plain.name, (*plain.operands, *escape))
    return Operation("not", (like,)) if found.args.get("negate") else like


def _operation(found: exp.Expr, depth: int) -> Operation:
    if isinstance(found, exp.In) and not found.expressions:
        raise WhereError("IN needs a list of values, such as IN ('a', 'b')")
    name = _OPERATIONS.get(type(found))
    given = _given(found)
    strange = given.keys() - {*_OPERANDS, *_SILENT.get(type(found), ())}
    if name is None or strange:
        raise _unknown(min(strange) if name and strange else _called(found))
    if isinstance(found, exp.And | exp.Or):  # a long chain is as deep as one of two
        return Operation(name, tuple(_node(each, depth + 1) for each in found.flatten()))
    if len(given.get("expressions", ())) > MOST_LISTED:
        raise WhereError(f"IN has {len(given['expressions']):,} values; use at most {MOST_LISTED:,}")
    operands: list[WhereNode] = []
    for argument in _OPERANDS:
        value = given.get(argument, [])
        operands += (_node(each, depth + 1) for each in (value if isinstance(value, list) else [value]))
    return Operation(name, tuple(operands))


def _given(found: exp.Expr) -> dict[str, Any]:
    """The arguments that say something."""
    return {
        name: value for name, value in found.args.items() if value is not None and value is not False and value != []
    }


def _called(found: exp.Expr) -> str:
    """The name of a node, as its writer knows it."""
    if isinstance(found, exp.Anonymous):
        return f"{str(found.this)[:60]}()"
    if isinstance(found, exp.Column):
        return f"the name {'.'.join(each.name for each in found.parts)[:60]} with a point"
    return f"{found.sql_name().lower()}()" if isinstance(found, exp.Func) else type(found).__name__.upper()


def _number(text: str) -> int | float:
    whole = int(text) if text.isdigit() else None
    if whole is not None and whole < 1 << 63:
        return whole
    try:
        value = float(text)
    except ValueError as error:
        raise WhereError(f"{text[:60]} is not a number") from error
    if value in (float("inf"), float("-inf")):
        raise WhereError(f"the number {text[:60]} is too large")
    return value


def _used(node: WhereNode) -> Iterator[str]:
    """The names of all operations."""
    if isinstance(node, Operation):
        yield node.name
        for each in node.operands:
            yield from _used(each)


def _place(error: SqlglotError) -> str:
    """Where a text is not of the language."""
    found = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    near = str(found.get("highlight") or "").strip()
    if not found:
        return "the filter has a quotation mark without its partner"
    place = f" near {near[:60]}" if near else ""
    where = "WHERE, without that word" if near.upper() == "WHERE" else "WHERE"
    return f"the filter cannot be read{place}: write it as SQL's {where}, {_EXAMPLE}"


_EXAMPLE = "such as camera LIKE 'Canon%' AND taken >= '2024-01-01'"


def _unknown(name: str) -> WhereError:
    return WhereError(f"the filter cannot use {name}: {_KNOWN}")


def _too_deep() -> WhereError:
    return WhereError(f"the filter is nested too deeply; use at most {DEEPEST} levels")
