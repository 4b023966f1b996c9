"""JSON files: their values and lines, and the reasons for refusing them."""

from pathlib import Path

import pytest

from pipelines.errors import LookalikeError
from pipelines.specifications import json_documents
from pipelines.specifications.json_documents import NotJsonError


def test_a_file_is_read_with_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1,\n "b": ["ä"]}', encoding="utf-8")
    found = json_documents.read(path)
    assert (found.path, found.value) == (path, {"a": 1, "b": ["ä"]})
    assert found.lines["b",] == found.lines["b", 0] == 2


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "is not JSON: a value is missing"),
        ("[]", 1, "is not a JSON object"),
        ('{"a": {"b": 1,\n"b": 2}}', 2, "b given twice in one object"),
    ],
)
def test_a_file_without_a_json_object_is_refused_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(NotJsonError, match=said) as caught:
        json_documents.read(path)
    assert caught.value.line == line
    assert str(path) in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(LookalikeError, match="cannot read"):
        json_documents.read(tmp_path / "gone.json")
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(NotJsonError, match="not JSON"):
        json_documents.read(tmp_path / "latin.json")
