"""The pages of one report: what each shows, the names of their files, and which of them it leads to. Knows nothing of
what they are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

_AROUND = 2  # pages on both sides of the present one that have links

FIRST = "index.html"
"""The first page of a report."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class ReportPage(Generic[Item]):
    """A page of a report. number: from 1, of `count` pages. items: shown on it. before: the number of items on the
    pages before it. first: the file of the first page. later: the names of the other files, before their numbers."""

    number: int
    count: int
    items: Sequence[Item]
    before: int
    first: str
    later: str

    def name(self, number: int) -> str:
        """The file of page `number` of the report."""
        return self.first if number == 1 else f"{self.later}-{number}.html"

    @property
    def file(self) -> str:
        """The page's own file."""
        return self.name(self.number)

    @property
    def linked(self) -> list[int]:
        """The numbers of the pages that it shows links to, and its own: the ends and those around it."""
        around = range(max(1, self.number - _AROUND), min(self.count, self.number + _AROUND) + 1)
        return sorted({1, self.count, *around})


def divided(items: Sequence[Item], most: int, first: str = FIRST, later: str = "page") -> Iterator[ReportPage[Item]]:
    """The pages for all items, at most `most` on each; one page if there are none."""
    begins = range(0, len(items), most) or range(1)
    for number, begin in enumerate(begins, start=1):
        yield ReportPage(number, len(begins), items[begin : begin + most], begin, first, later)
