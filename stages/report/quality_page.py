"""The page that shows pictures with flaws: a section for each kind, with its limit in words and the first pictures.

Knows the lists, but no tables, no files and no Pachyderm.
"""

from __future__ import annotations

from collections.abc import Sequence

from stages.datum.text_format import counted
from stages.quality.picture_flaws import PictureFlaw
from stages.report import markup

MOST_TILES = 24
"""Pictures of a list that the page shows."""

LINES = "quality.jsonl"
"""The file that has all of them."""


def page(lists: Sequence[PictureFlaw], pictures: int, commit: str) -> str:
    """The page's text, for a UTF-8 file. pictures: of the library. commit: the start of its index's id."""
    return markup.fill(
        "quality.html",
        heading="Pictures to look at",
        lists=lists,
        summary=f"{counted(pictures, 'picture', 'pictures')} in the library, commit {commit}",
        most=MOST_TILES,
        lines=LINES,
    )
