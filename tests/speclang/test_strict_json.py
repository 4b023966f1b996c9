"""Strict JSON: the same values as json, the line of each part, and the reasons of refusals."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from speclang import strict_json
from speclang.field_paths import FieldPath
from speclang.strict_json import JSONDecodeError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def at(value: Any, field: FieldPath) -> Any:
    for part in field:
        value = value[part]
    return value


@given(value=VALUES, indent=st.sampled_from([None, 0, 2]))
def test_it_reads_the_same_as_json_and_every_part_is_on_its_line(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    found = strict_json.parse(text)
    assert found.value == value
    lines = text.split("\n")
    for field, line in found.lines.items():
        named = bool(field) and isinstance(field[-1], str)
        begins = json.dumps(field[-1] if named else at(value, field), ensure_ascii=False)
        assert (begins if named else begins[:1]) in lines[line - 1]


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("", 1, "a value is missing"),
        ('{\n"a": 1,\n}', 3, "a comma stands before the }"),
        ('{"a" 1}', 1, "a : is missing"),
        ('{"a": 1 "b": 2}', 1, "a , is missing"),
        ('{"a": nil}', 1, "nil is not a valid value"),
        ('{"a": NaN}', 1, "NaN is not a valid value"),
        ("-Infinity", 1, "-Infinity is not a valid value"),
        ("01", 1, "01 is not a valid value"),
        ("{\n 'a': 1}", 2, "a name in double quotes is missing"),
        ('{"a": [1, 2', 1, "is missing"),
        ('{"a": "b', 1, "Unterminated string"),
        ('"\t"', 1, "Invalid control character"),
        ('{"a": 1}\n{"b": 2}', 2, "a second one follows"),
        ('{"a": 1} }', 1, "something follows its end"),
        ('{"a": {"b": 1,\n"b": 2}}', 2, "b given twice in one object"),
        ('{"a": ' + "[" * 300 + "]" * 300 + "}", 1, "nested too deeply"),
        ("[" * 100_000, 1, "nested too deeply"),
    ],
)
def test_invalid_json_is_refused_with_its_line(text: str, line: int, why: str) -> None:
    with pytest.raises(JSONDecodeError, match=why) as caught:
        strict_json.parse(text)
    assert caught.value.lineno == line
