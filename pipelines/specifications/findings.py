"""The findings of checks: flaws with their places, reasons and fixes. Knows no check."""

import difflib
import enum
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from speclang.field_paths import FieldPath


class FlawLevel(enum.IntEnum):
    """The gravity of a flaw: an ERROR fails at creation or at run time, a WARNING may surprise, and a NOTE is for
    information, such as something that could not be checked."""

    NOTE = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class FlawPlace:
    """The place of a flaw: a file and, where it is known, its line. None stands for the server itself."""

    file: Path | None
    line: int | None = None

    def __str__(self) -> str:
        if self.file is None:
            return "the server"
        return f"{self.file}:{self.line}" if self.line else str(self.file)


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something that is wrong in one specification: `why` and the `fix`, each a phrase without a full stop. `rule`
    names the check."""

    level: FlawLevel
    rule: str
    field: FieldPath
    why: str
    fix: str = ""

    @classmethod
    def error(cls, rule: str, field: FieldPath, why: str, fix: str = "") -> "Flaw":
        """A flaw that fails at creation or at run time."""
        return cls(FlawLevel.ERROR, rule, field, why, fix)

    @classmethod
    def warning(cls, rule: str, field: FieldPath, why: str, fix: str = "") -> "Flaw":
        """A flaw that may surprise."""
        return cls(FlawLevel.WARNING, rule, field, why, fix)

    @classmethod
    def note(cls, rule: str, field: FieldPath, why: str) -> "Flaw":
        """Something to know."""
        return cls(FlawLevel.NOTE, rule, field, why)


@dataclass(frozen=True, slots=True)
class Finding:
    """A flaw, the pipeline that has it ("" for one without a name), and its place."""

    flaw: Flaw
    pipeline: str
    place: FlawPlace


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The question whether the most similar of the known names was meant; other words if none is similar."""
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"did you mean {near[0]}?" if near else otherwise
