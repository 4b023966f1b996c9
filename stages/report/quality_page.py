"""The page that shows pictures with flaws: a section for each kind, with its limit in words and the first pictures.

Knows the lists, but no tables, no files and no Pachyderm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stages.datum.text_format import counted
from stages.record.sources import Source
from stages.report import markup

MOST_TILES = 24
"""Pictures of a list that the page shows."""

LINES = "quality.jsonl"
"""The file that has all of them."""


@dataclass(frozen=True)
class FlawedPicture:
    """A picture in a list: its sources, its value as a phrase, and a JPEG file, None if the page shows none."""

    id: str
    said: str
    sources: Sequence[Source]
    thumbnail: bytes | None = None


@dataclass(frozen=True)
class FlawList:
    """The pictures that one thing may be wrong with. name, title, limit: as in stages.quality.picture_flaws. note: why
    nothing is listed, "" if the pictures were judged."""

    name: str
    title: str
    limit: str
    pictures: Sequence[FlawedPicture]
    note: str = ""


def page(lists: Sequence[FlawList], pictures: int, commit: str) -> str:
    """The page's text, for a UTF-8 file. pictures: of the library. commit: the start of its index's id."""
    return markup.fill(
        "quality.html",
        heading="Pictures to look at",
        lists=lists,
        summary=f"{counted(pictures, 'picture', 'pictures')} in the library, commit {commit}",
        most=MOST_TILES,
        lines=LINES,
    )
