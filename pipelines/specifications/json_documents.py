"""JSON files as people write them: their values, and the line of each part. Knows no specification."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.errors import LookalikeError
from speclang import strict_json
from speclang.field_paths import FieldPath
from speclang.strict_json import JSONDecodeError


class NotJsonError(LookalikeError):
    """A file that does not hold a JSON object: the reason, and its line where that is known."""

    def __init__(self, path: Path, why: str, line: int | None = None) -> None:
        super().__init__(f"{path} {why}")
        self.why = why
        self.line = line


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """A JSON file: its value, and the line (from 1) on which each part of it begins."""

    path: Path
    value: Any
    lines: Mapping[FieldPath, int]


def read(path: Path) -> JsonDocument:
    """Reads a file that holds one JSON object. Raises NotJsonError for any other, also for one that gives a name twice
    in one object, and LookalikeError for a file that cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise LookalikeError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise NotJsonError(path, f"is not JSON: {error}") from error
    try:
        read = strict_json.parse(text)
    except JSONDecodeError as error:
        raise NotJsonError(path, f"is not JSON: {error}", error.lineno) from error
    if not isinstance(read.value, dict):
        raise NotJsonError(path, "is not a JSON object: a file holds one", 1)
    return JsonDocument(path, read.value, read.lines)
