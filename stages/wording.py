"""What a result sheet says in words: the notes on an entry, its numbers and distances. Shared by the grid and the page.

Knows the answers' values only: no drawing, no markup. What it returns is plain text, to be escaped by who shows it.
"""

from __future__ import annotations

import re

from stages.answers import Answer, Answers, Match, paths

UNNAMED = "(name unknown)"
"""Shown for a query whose own table is missing."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

NOTHING_TO_ASK = "No picture of this entry could be searched for."
EMPTY_LIBRARY = "The library is empty: there is no picture to compare with yet."


def title(answers: Answers) -> str:
    """The headline of the entry's sheet."""
    return f"Nearest pictures for “{answers.entry}”"


def summary(answers: Answers, shown: int, limit: int) -> str:
    """One line on what the sheet shows: how many of the queries, their at most `limit` nearest, measured how."""
    total = len(answers.answers)
    queries = counted(total, "query picture", "query pictures")
    if shown < total:
        queries = f"{shown} of {queries}"
    if not answers.answers or not answers.searched:
        return queries
    k = min(limit, answers.library_size or answers.k)
    return f"{queries}, each with its {counted(k, 'nearest picture', 'nearest pictures')} by {answers.metric} distance"


def notes(answers: Answers, shown: int) -> list[str]:
    """What a reader must know to read the sheet right, the gravest first; empty where all is as expected."""
    said = []
    total = len(answers.answers)
    if total == 0:
        said.append(NOTHING_TO_ASK)
    elif not answers.searched:
        said.append(EMPTY_LIBRARY)
    elif answers.library_size is not None:
        said.append(small_library(answers.library_size, answers.k))
    if answers.rejected:
        files = counted(len(answers.rejected), "file", "files")
        verb = "was" if len(answers.rejected) == 1 else "were"
        said.append(f"{files} of this entry {verb} rejected.")
    if shown < total:
        said.append(f"index.html shows {shown} of {total:,} queries; neighbors.jsonl holds all of them.")
    return said


def small_library(size: int, k: int) -> str:
    """What to say where the library has `size` pictures, fewer than the k neighbours asked for."""
    return f"Only {counted(size, 'picture', 'pictures')} in the library, where {k} neighbours were asked for."


def distance(value: float) -> str:
    """A distance for people: four significant digits, "0" for exactly 0 and for nothing else."""
    if value == 0:
        return "0"
    if value >= 1000:
        return f"{value:.0f}"
    if value < 0.001:
        return f"{value:.2e}"
    return f"{value:#.4g}".rstrip(".")


def name(pictured: Answer | Match) -> str:
    """The first of a picture's true names."""
    return next(iter(paths(pictured.sources)), UNNAMED)


def counted(count: int, one: str, many: str) -> str:
    """The number with its noun: "1 picture", "2,000 pictures"."""
    return f"{count:,} {one if count == 1 else many}"


def visible(text: str) -> str:
    """The text with a picture or code in place of what no page or terminal can show, or what would turn it around."""
    return _CONTROL.sub(_coded, text)


def _coded(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)  # its control picture
    if 0xDC80 <= code <= 0xDCFF:  # how Python carries a byte of a file name that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{{{code:x}}}"
