"""The table at the front of a pack: its pictures, and the places of their bytes in the file. Without NumPy, which takes
long to import.

Before preprocess-16 a pack was an array of NumPy's, with the lines about its pictures behind the pixels. Such packs are
read here, too: older commits hold them. Of packs of any version, facts that are not known here are passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from stages.datum.contract import StageError
from stages.record.sources import Source

SUFFIX = ".pack"
FORMER_SUFFIX = ".npy"
"""Of packs before preprocess-16."""

HEAD = 4096
"""Bytes that are read first: the whole table of a pack of few pictures, and the header of any."""

AGAIN = "run preprocess again: lookalike deploy --reprocess preprocess"

_LONGEST_SIDE = 1 << 16

_FORMER_BEGIN = 128
"""Bytes before the pixels of a former pack, for any number of pictures."""

_MAGIC = b"\x93NUMPY\x01\x00"
_SHAPE = re.compile(rb"'shape': \((\d{1,9}), ([1-9]\d{0,5}), ([1-9]\d{0,5}), (3)\)")

_Read = Callable[[int, int], bytes]
"""Gives the bytes of a file from an offset on, and at most so many of them; with 0, all to its end."""


class PackHeader(NamedTuple):
    """The first line of a pack. fit: how its pictures fill their squares. side: of these, in pixels. begin, end: of the
    lines about single pictures, in bytes from the start of the file; the coded pictures follow."""

    fit: str
    side: int
    begin: int
    end: int


class PackRow(NamedTuple):
    """A picture of a pack: its id, its sources, its size in pixels without padding, as (width, height), and the place
    of its bytes in the file."""

    id: str
    sources: tuple[Source, ...]
    size: tuple[int, int]
    begin: int
    length: int


@dataclass(frozen=True, slots=True)
class PackTable:
    """The pictures of a pack, in the order of their bytes. side: of their squares, in pixels. raw: whether the bytes
    are the pixels of the squares, as in former packs, and not coded pictures."""

    side: int
    rows: tuple[PackRow, ...]
    raw: bool


def header(head: bytes) -> PackHeader:
    """The header in the first bytes of a pack. Raises ValueError for another file."""
    line, newline, _ = head.partition(b"\n")
    try:
        facts = json.loads(line)
        fit, side, length = facts["fit"], facts["side"], facts["table"]
    except (ValueError, KeyError, TypeError, RecursionError) as failure:
        raise ValueError(f"it does not begin as one: {failure}") from failure
    whole = type(side) is int and type(length) is int and 0 < side <= _LONGEST_SIDE and length >= 0
    if not newline or not whole or not isinstance(fit, str):
        raise ValueError("it does not begin as one")
    begin = len(line) + 1
    return PackHeader(fit, side, begin, begin + length)


def paths(directory: Path) -> list[Path]:
    """The packs in a directory, sorted. Raises StageError if one is from before preprocess-16."""
    former = next(directory.glob(f"*{FORMER_SUFFIX}"), None)
    if former is not None:
        raise StageError(
            f"an older version of lookalike wrote the pack {former.name}: `lookalike upgrade` brings all pipelines to "
            f"one version; if that is done, {AGAIN}"
        )
    return sorted(directory.glob(f"*{SUFFIX}"))


def picture_side(pack: Path) -> int:
    """The side of the squares of a pack's pictures, in pixels. Raises StageError for a file that is not a pack."""
    try:
        with pack.open("rb") as file:
            return header(file.readline(HEAD)).side
    except (OSError, ValueError) as failure:
        raise StageError(f"the pack {pack.name} cannot be read ({failure}); {AGAIN}") from failure


def read_table(read: _Read) -> PackTable:
    """The pictures of a pack of any version, of which no picture is read. Raises ValueError for another file."""
    head = read(0, HEAD)
    try:
        if head.startswith(_MAGIC):
            count, side = _former_shape(head)
            length = 3 * side * side
            lines = read(_FORMER_BEGIN + count * length, 0).splitlines()[1:]
            lengths = [length] * len(lines)
            found = [json.loads(line) for line in lines]
            return PackTable(side, tuple(_rows(found, _FORMER_BEGIN, lengths)), raw=True)
        facts = header(head)
        table = head[facts.begin : facts.end]
        if len(head) < facts.end:
            table += read(len(head), facts.end - len(head))
        if len(table) != facts.end - facts.begin:
            raise ValueError("it ends within its table")
        found = [json.loads(line) for line in table.splitlines()]
        return PackTable(facts.side, tuple(_rows(found, facts.end, [each["coded_size"] for each in found])), raw=False)
    except (KeyError, TypeError, AttributeError, RecursionError) as failure:
        raise ValueError(f"these are not the lines of a pack: {failure}") from failure


def _former_shape(head: bytes) -> tuple[int, int]:
    """The number of pictures, and the side of their squares."""
    found = _SHAPE.search(head, len(_MAGIC) + 2)
    if found is None:
        raise ValueError("it is not an array of pictures")
    count, _, side, _ = map(int, found.groups())
    return count, side


def _rows(lines: list[dict[str, Any]], begin: int, lengths: list[int]) -> Iterator[PackRow]:
    for line, length in zip(lines, lengths, strict=True):
        width, height = line["size"]
        known = ({name: each[name] for name in Source._fields if name in each} for each in line["sources"])
        yield PackRow(line["id"], tuple(Source(**each) for each in known), (width, height), begin, length)
        begin += length


def source_of(line: bytes) -> str:
    """The true path of a rejected file, from its line."""
    return str(json.loads(line)["source"])
