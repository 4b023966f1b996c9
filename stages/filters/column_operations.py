"""The operations of filters on columns of Arrow's, with SQL's logic of three values: null is not known.

Numbers are calculated as float64, where an overflow, a division by zero and what else is not a number give null. A
column of texts that repeat is worked on by its dictionary. Knows no syntax.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stages.files.path_globs import MOST_WILDCARDS, FilterError
from stages.filters.attribute_table import KINDS, Kind, decoded


@dataclass(frozen=True)
class Comparison:
    """A comparison of two columns or scalars of one kind, and its sign. Texts are compared by their characters'
    numbers."""

    sign: str
    function: Callable[[Any, Any], Any]

    def __call__(self, one: Any, other: Any) -> Any:
        if isinstance(other, pa.Scalar):
            return _by_value(lambda values: self.function(*_numbers(values, other)), one)
        return self.function(*_numbers(decoded(one), decoded(other)))


COMPARISONS: Mapping[str, Comparison] = {
    "eq": Comparison("=", pc.equal),
    "neq": Comparison("<>", pc.not_equal),
    "lt": Comparison("<", pc.less),
    "lte": Comparison("<=", pc.less_equal),
    "gt": Comparison(">", pc.greater),
    "gte": Comparison(">=", pc.greater_equal),
}
"""By the names of sqlglot's nodes, as all operations."""


def within(values: Any, listed: Sequence[Any]) -> Any:
    """IN: the values are one of those listed, Arrow's scalars of their kind. null if not, where one of these is."""
    some = [each for each in listed if each.is_valid]
    found = (
        reduce(pc.or_kleene, (COMPARISONS["eq"](values, each) for each in some), pa.scalar(False))
        if len(some) < 4
        else _by_value(partial(_is_in, some=some), values)
    )
    return found if len(some) == len(listed) else pc.or_kleene(found, pa.scalar(None, pa.bool_()))


def _is_in(values: Any, some: Sequence[Any]) -> Any:
    mixed = len({each.type for each in some}) > 1  # whole numbers and others
    plain = [float(each.as_py()) if mixed else each.as_py() for each in some]
    known, wanted = _numbers(values, pa.array(plain, None if mixed else some[0].type))
    return pc.if_else(pc.is_valid(known), pc.is_in(known, wanted), None)


def like(pattern: str, escape: str = "", *, ignore_case: bool) -> Callable[[Any], Any]:
    """LIKE as a function of texts, which takes time linear in their length. Raises FilterError for a pattern that is
    not valid."""
    matched = partial(pc.match_substring_regex, pattern=_expression(pattern, escape), ignore_case=ignore_case)
    try:
        matched(pa.scalar(""))
    except pa.ArrowInvalid as error:
        raise FilterError(f"the pattern {pattern[:60]} is too long") from error
    return partial(_by_value, matched)


def _expression(pattern: str, escape: str) -> str:
    parts: list[str] = []
    characters = iter(pattern)
    for each in characters:
        if each == escape:
            following = next(characters, None)
            if following is None:
                raise FilterError(f"the pattern {pattern[:60]} ends with its escape character")
            parts.append(re.escape(following))
        elif each == "%":
            parts += [] if parts[-1:] == [".*"] else [".*"]
        else:
            parts.append("." if each == "_" else re.escape(each))
    if parts.count(".*") > MOST_WILDCARDS:
        raise FilterError(f"the pattern has {parts.count('.*')} times %; use it at most {MOST_WILDCARDS} times")
    return f"(?s)\\A{''.join(parts)}\\z"


@dataclass(frozen=True)
class Calculation:
    """A function or an operator that calculates: its name, the kind of its operands, and of what it gives."""

    name: str
    takes: Kind
    gives: Kind
    function: Callable[..., Any]

    def __call__(self, *operands: Any) -> Any:
        """Columns or scalars of the kind, or NULL, as one."""
        given = [self._typed(each) for each in operands]
        found = self.function(*given)
        if not pa.types.is_floating(found.type):
            return found
        return pc.if_else(pc.is_finite(found), found, pa.scalar(None, pa.float64()))

    def _typed(self, operand: Any) -> Any:
        if self.takes != "number" and not pa.types.is_null(operand.type):
            return operand
        return operand.cast(KINDS[self.takes].type, safe=False)


def _rounded(numbers: Any, digits: Any = None) -> Any:
    """Halves away from 0. Larger numbers are whole, and Arrow refuses them."""
    small = pc.less(pc.abs(numbers), 1e15)
    ndigits = 0 if digits is None else int(digits.as_py())
    found = pc.round(pc.if_else(small, numbers, 0.0), ndigits=ndigits, round_mode="half_towards_infinity")
    return pc.if_else(small, found, numbers)


def _joined(*texts: Any) -> Any:
    return pc.binary_join_element_wise(*map(decoded, texts), "")


def _by_value(function: Callable[[Any], Any], column: Any) -> Any:
    """A function of each value, called with the distinct ones alone where these are known."""
    if not isinstance(column, pa.DictionaryArray):
        return function(column)
    found = function(column.dictionary)
    repeating = pa.types.is_string(found.type)  # as the column's values do
    return pa.DictionaryArray.from_arrays(column.indices, found) if repeating else pc.take(found, column.indices)


CALCULATIONS: Mapping[str, Calculation] = {
    "add": Calculation("+", "number", "number", pc.add),
    "sub": Calculation("-", "number", "number", pc.subtract),
    "mul": Calculation("*", "number", "number", pc.multiply),
    "div": Calculation("/", "number", "number", pc.divide),
    "mod": Calculation("%", "number", "number", pc.remainder),
    "neg": Calculation("negative", "number", "number", pc.negate),
    "abs": Calculation("abs", "number", "number", pc.abs),
    "round": Calculation("round", "number", "number", _rounded),
    "length": Calculation("length", "text", "number", partial(_by_value, pc.utf8_length)),
    "lower": Calculation("lower", "text", "text", partial(_by_value, pc.utf8_lower)),
    "upper": Calculation("upper", "text", "text", partial(_by_value, pc.utf8_upper)),
    "dpipe": Calculation("||", "text", "text", _joined),
    "year": Calculation("year", "date", "number", pc.year),
    "month": Calculation("month", "date", "number", pc.month),
    "day": Calculation("day", "date", "number", pc.day),
}


def _numbers(one: Any, other: Any) -> tuple[Any, Any]:
    """Whole numbers beside others become float64."""
    if pa.types.is_floating(one.type) != pa.types.is_floating(other.type):
        return one.cast(pa.float64(), safe=False), other.cast(pa.float64(), safe=False)
    return one, other
