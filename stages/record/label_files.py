"""Labels of pictures, read from CSV files with the columns source, label and, if wanted, name.

Only the standard library: the command imports this at every start. Knows no pictures: a source is a text here.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

SUFFIX = ".csv"
HEADER = "source,label"
EVALUATION = "evaluate"
"""The directory of the labels that are for evaluation alone."""

FOLDERS = "folders.csv"
"""The file of the labels that are the names of folders, for evaluation alone; earlier versions had it at the top."""

COLUMNS = ("source", "label", "name")

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SHOWN = 60  # most characters of a line in a reason


class LabelRow(NamedTuple):
    """One label: the true name of a source, and its label: the row's name if it has one."""

    source: str
    label: str


class LineProblem(NamedTuple):
    """A line of a file that cannot be used, or all of a file (line 0), with the reason. unknown: whether the line names
    no picture of the library, and is right otherwise."""

    file: str
    line: int
    reason: str
    unknown: bool = False

    @property
    def said(self) -> str:
        """The problem in words, for people."""
        return f"{self.file}: {self.reason}" if not self.line else f"{self.file}, line {self.line}: {self.reason}"


@dataclass(frozen=True)
class SourceLabels:
    """The labels of all files together.

    of: the label of each source. conflicts: the labels, sorted, of each source that has several; such a source is not
    in `of`. rows: the number of labels that each file gives. problems: lines and files that were left out, in order.
    """

    of: dict[str, str] = field(default_factory=dict)
    conflicts: dict[str, list[str]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    problems: list[LineProblem] = field(default_factory=list)


def is_for_training(name: str) -> bool:
    """Whether classifiers are trained on the labels of a file, by its path in the repo."""
    return not name.startswith(f"{EVALUATION}/") and name != FOLDERS


def unite(files: Iterable[tuple[str, bytes]]) -> SourceLabels:
    """The labels in files, given as pairs of a name and the content. Never fails: what cannot be read is a problem."""
    found = SourceLabels()
    for name, content in files:
        found.rows[name] = 0
        for each in read(name, content):
            if isinstance(each, LineProblem):
                found.problems.append(each)
                continue
            found.rows[name] += 1
            if found.of.setdefault(each.source, each.label) != each.label:
                known = found.conflicts.setdefault(each.source, [found.of[each.source]])
                if each.label not in known:
                    known.append(each.label)
    for source, labels in found.conflicts.items():
        del found.of[source]
        labels.sort()
    return found


def read(name: str, content: bytes) -> Iterator[LabelRow | LineProblem]:
    """The labels in one file, and the problems with it. In UTF-8, with or without a byte order mark; file names that
    are not UTF-8 are taken as they are on disk."""
    if not name.lower().endswith(SUFFIX):
        yield LineProblem(name, 0, f"its name does not end in {SUFFIX}")
        return
    if content.startswith(_UTF_16):
        yield LineProblem(name, 0, "it is in UTF-16; save it as CSV in UTF-8")
        return
    text = content.decode("utf-8-sig", "surrogateescape")
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    places: tuple[int, int, int | None] | None = None
    try:
        for cells in lines:
            if not any(cells):
                continue
            if places is None:
                places = _places(cells)
                if places is None:
                    yield LineProblem(name, lines.line_num, _wrong_header(cells))
                    return
                continue
            yield _row(name, lines.line_num, cells, places)
    except csv.Error as error:
        yield LineProblem(name, lines.line_num, f"it is not valid CSV ({error}); nothing after it was read")
        return
    if places is None:
        yield LineProblem(name, 0, f"it is empty; its first line should be {HEADER}")


def without(name: str, content: bytes, goes: Callable[[LabelRow], bool]) -> bytes:
    """A file without the rows that go; every other byte stays."""
    if not name.lower().endswith(SUFFIX) or content.startswith(_UTF_16):
        return content
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    lines = [*io.StringIO(content[len(mark) :].decode("utf-8", "surrogateescape"), newline="")]
    table = csv.reader(lines, strict=True)
    places: tuple[int, int, int | None] | None = None
    kept: list[str] = []
    begun = 0
    with contextlib.suppress(csv.Error):  # `read` takes nothing after it, either
        for cells in table:
            row = _row(name, table.line_num, cells, places) if places and any(cells) else None
            places = places or (_places(cells) if any(cells) else None)
            if not (isinstance(row, LabelRow) and goes(row)):
                kept += lines[begun : table.line_num]
            begun = table.line_num
    return mark + "".join([*kept, *lines[begun:]]).encode("utf-8", "surrogateescape")


def can_be_written(row: LabelRow) -> bool:
    """Whether `read` would read a row back: a source must be a file name, a label must be UTF-8."""
    try:
        row.source.encode("utf-8", "surrogateescape"), row.label.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def from_folders(sources: Iterable[str]) -> Iterator[LabelRow]:
    """The parent folder of each source as its label, by source, also in archives; none for those without a folder, or
    with one that is not UTF-8."""
    for source in sorted({*sources}):
        row = LabelRow(source, PurePosixPath(source).parent.name.strip())
        if row.label and can_be_written(row):
            yield row


def format_csv(rows: Iterable[LabelRow]) -> bytes:
    """A file of labels, which `read` reads back as they are."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\r\n")  # it quotes a text with one of these
    table.writerow(COLUMNS[:2])
    table.writerows(rows)
    return text.getvalue().encode("utf-8", "surrogateescape")


def _places(cells: list[str]) -> tuple[int, int, int | None] | None:
    """The places of source, label and name in a header."""
    names = [cell.strip().lower() for cell in cells]
    if not {*COLUMNS[:2]} <= {*names}:
        return None
    return names.index("source"), names.index("label"), names.index("name") if "name" in names else None


def _wrong_header(cells: list[str]) -> str:
    line = ",".join(cells)
    separated = next((each for each in (";", "\t") if f"source{each}label" in line.lower().replace(" ", "")), None)
    if separated:
        return "the columns must be separated by commas"
    shown = line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
    return f"the first line must name the columns, {HEADER} or {','.join(COLUMNS)}; it is {shown!r}"


def _row(file: str, line: int, cells: list[str], places: tuple[int, int, int | None]) -> LabelRow | LineProblem:
    source, label, name = places
    if len(cells) <= max(source, label):
        return LineProblem(file, line, f"a line needs a source and a label; this one has {len(cells)} of the columns")
    given = cells[name].strip() if name is not None and name < len(cells) else ""
    said = given or cells[label].strip()
    if not cells[source] or not said:
        return LineProblem(file, line, f"the {'label' if cells[source] else 'source'} is empty")
    if any("\ud800" <= each <= "\udfff" for each in said):
        return LineProblem(file, line, "the label is not UTF-8")
    return LabelRow(cells[source], said)
