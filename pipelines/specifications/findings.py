"""What a check finds: a flaw with its place, why it is one, and what to do about it. Knows no check."""

import enum
from dataclasses import dataclass
from pathlib import Path

from speclang.fields import Field


class Level(enum.IntEnum):
    """How bad it is: an ERROR fails at creation or at run time, a WARNING may surprise, a NOTE is for information, such
    as something that could not be checked."""

    NOTE = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written: a file, and the line of it where one is known. None is for the server itself."""

    file: Path | None
    line: int | None = None

    def __str__(self) -> str:
        if self.file is None:
            return "the server"
        return f"{self.file}:{self.line}" if self.line else str(self.file)


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something in one specification: `why` it is wrong and the `mend`, each a phrase without a full stop. `rule` names
    the check."""

    level: Level
    rule: str
    field: Field
    why: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A flaw, the pipeline that has it ("" if it has no name yet), and where it is written."""

    flaw: Flaw
    pipeline: str
    place: Place
