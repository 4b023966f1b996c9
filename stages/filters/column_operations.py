"""The operations of filters on columns of Arrow's, with SQL's logic of three values: null is not known.

Numbers are calculated as float64, where an overflow, a division by zero and what else is not a number give null. A
column of texts that repeat is worked on by its dictionary. Knows no syntax.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.files.path_globs import MOST_WILDCARDS
from stages.filters.attribute_table import decoded
from stages.filters.where_parser import WhereError

_COMPARISONS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(name: str, one: Any, other: Any) -> Any:
    """Two columns or scalars of one kind compared. Texts are compared by their characters' numbers."""
    function = _COMPARISONS[name]
    if isinstance(other, pa.Scalar):
        return _by_value(one, lambda values: function(*_numbers(values, other)))
    return function(*_numbers(decoded(one), decoded(other)))


def within(values: Any, listed: Sequence[Any]) -> Any:
    """IN: the values are one of those listed, Arrow's scalars of their kind. null if not, where one of these is."""
    some = [each for each in listed if each.is_valid]
    found = (
        reduce(pc.or_kleene, (compare("=", values, each) for each in some), pa.scalar(False))
        if len(some) < 4
        else _is_in(values, some)
    )
    return found if len(some) == len(listed) else pc.or_kleene(found, pa.scalar(None, pa.bool_()))


def _is_in(values: Any, some: Sequence[Any]) -> Any:
    mixed = len({each.type for each in some}) > 1  # whole numbers and others
    listed = pa.array(
        [(float(each.as_py()) if mixed else each.as_py()) for each in some], None if mixed else some[0].type
    )

    def found(plain: Any) -> Any:
        known, wanted = _numbers(plain, listed)
        return pc.if_else(pc.is_valid(known), pc.is_in(known, wanted), None)

    return _by_value(values, found)


def like(pattern: str, escape: str = "", *, ignore_case: bool) -> Callable[[Any], Any]:
    """LIKE as a function of texts, which takes time linear in their length. Raises WhereError for a pattern that is
    not valid."""
    expression = _expression(pattern, escape)

    def matched(values: Any) -> Any:
        return pc.match_substring_regex(values, expression, ignore_case=ignore_case)

    try:
        matched(pa.scalar(""))
    except pa.ArrowInvalid as error:
        raise WhereError(f"the pattern {pattern[:60]} is too long") from error
    return lambda texts: _by_value(texts, matched)


def _expression(pattern: str, escape: str) -> str:
    parts: list[str] = []
    characters = iter(pattern)
    for each in characters:
        if each == escape:
            following = next(characters, None)
            if following is None:
                raise WhereError(f"the pattern {pattern[:60]} ends with its escape character")
            parts.append(re.escape(following))
        elif each == "%":
            parts += [] if parts[-1:] == [".*"] else [".*"]
        else:
            parts.append("." if each == "_" else re.escape(each))
    if parts.count(".*") > MOST_WILDCARDS:
        raise WhereError(f"the pattern has {parts.count('.*')} times %; use it at most {MOST_WILDCARDS} times")
    return f"(?s)\\A{''.join(parts)}\\z"


def apply(name: str, *operands: Any) -> Any:
    """A function or an operator that calculates, by its name, on columns or scalars of its kind."""
    if name in _OF_TEXTS:
        return _by_value(_typed(operands[0], pa.string()), _OF_TEXTS[name], texts=name != "length")
    if name == "||":
        return pc.binary_join_element_wise(*(decoded(_typed(each, pa.string())) for each in operands), "")
    if name in _OF_DATES:
        return _OF_DATES[name](_typed(operands[0], pa.timestamp("s")))
    given = [_float(each) for each in operands]
    if name == "round":
        return _rounded(given[0], operands[1].as_py() if len(operands) > 1 else 0)
    return _finite(_ARITHMETIC[name](*given))


def _rounded(numbers: Any, digits: int) -> Any:
    """Halves away from 0. Larger numbers are whole, and Arrow refuses them."""
    small = pc.less(pc.abs(numbers), _WHOLE)
    found = pc.round(pc.if_else(small, numbers, 0.0), ndigits=digits, round_mode="half_towards_infinity")
    return pc.if_else(small, found, numbers)


_WHOLE = 1e15


def _remainder(one: Any, other: Any) -> Any:
    """With the sign of the first."""
    first, second = (
        np.asarray(each.as_py() if isinstance(each, pa.Scalar) else each.to_numpy(zero_copy_only=False), np.float64)
        for each in (one, other)
    )
    with np.errstate(all="ignore"):
        found = np.fmod(first, second)
    return pa.scalar(float(found)) if found.ndim == 0 else pa.array(found)


_OF_TEXTS: Mapping[str, Callable[[Any], Any]] = {
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    "length": lambda texts: _float(pc.utf8_length(texts)),
}
_OF_DATES: Mapping[str, Callable[[Any], Any]] = {"year": pc.year, "month": pc.month, "day": pc.day}
_ARITHMETIC: Mapping[str, Callable[..., Any]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": pc.divide,
    "%": _remainder,
    "negative": pc.negate,
    "abs": pc.abs,
}


def _typed(column: Any, type: pa.DataType) -> Any:
    """NULL as a value of a kind."""
    return pa.scalar(None, type) if pa.types.is_null(column.type) else column


def _by_value(column: Any, function: Callable[[Any], Any], texts: bool = False) -> Any:
    """A function of each value, called with the distinct ones alone where these are known. texts: its results are
    texts, which repeat as its values do."""
    if not isinstance(column, pa.DictionaryArray):
        return function(column)
    found = function(column.dictionary)
    return pa.DictionaryArray.from_arrays(column.indices, found) if texts else pc.take(found, column.indices)


def _numbers(one: Any, other: Any) -> tuple[Any, Any]:
    """Whole numbers beside others become float64."""
    if pa.types.is_floating(one.type) != pa.types.is_floating(other.type):
        return _float(one), _float(other)
    return one, other


def _float(numbers: Any) -> Any:
    return numbers.cast(pa.float64(), safe=False)


def _finite(numbers: Any) -> Any:
    return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, pa.float64()))
