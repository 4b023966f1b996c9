"""Reading JSON with the line of each part: the same values as json, and lines that people find things on."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import LookalikeError
from pipelines.specifications import documents
from pipelines.specifications.documents import NotJsonError
from speclang.fields import Field

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def at(value: Any, field: Field) -> Any:
    for part in field:
        value = value[part]
    return value


@given(value=st.dictionaries(st.text(), VALUES, max_size=4), indent=st.sampled_from([None, 0, 2]))
def test_it_reads_what_json_reads_and_every_part_is_on_its_line(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any], indent: int | None
) -> None:
    path = tmp_path_factory.getbasetemp() / "value.json"
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")
    found = documents.read(path)
    assert found.value == value
    lines = text.split("\n")
    for field, line in found.lines.items():
        named = bool(field) and isinstance(field[-1], str)
        begins = json.dumps(field[-1] if named else at(value, field), ensure_ascii=False)
        assert (begins if named else begins[:1]) in lines[line - 1]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "a value is missing"),
        ("[]", 1, "not a JSON object"),
        ('{\n"a": 1,\n}', 3, "a comma stands before the }"),
        ('{"a" 1}', 1, "a : is missing"),
        ('{"a": 1 "b": 2}', 1, "a , is missing"),
        ('{"a": nil}', 1, "nil is no value"),
        ('{"a": NaN}', 1, "NaN is no value"),
        ("{\n 'a': 1}", 2, "a name in double quotes is missing"),
        ('{"a": [1, 2', 1, "is missing"),
        ('{"a": "b', 1, "Unterminated string"),
        ('{"a": 1}\n{"b": 2}', 2, "a second one follows"),
        ('{"a": 1} }', 1, "something follows its end"),
        ('{"a": {"b": 1,\n"b": 2}}', 2, "b twice in one object"),
        ('{"a": ' + "[" * 300 + "]" * 300 + "}", 1, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_said_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(NotJsonError, match=said) as caught:
        documents.read(path)
    assert caught.value.line == line
    assert str(path) in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(LookalikeError, match="cannot read"):
        documents.read(tmp_path / "gone.json")
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(NotJsonError, match="not JSON"):
        documents.read(tmp_path / "latin.json")
