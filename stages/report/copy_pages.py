"""The pages that show groups of copies: the picture to keep beside its copies, with sizes, dates and names.

Exact copies and near ones have pages of their own, since only the former can go unseen.

Knows the groups' values, but no tables, no files and no Pachyderm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stages.datum import text_format
from stages.datum.text_format import counted
from stages.quality.copy_groups import TURNED, CopyGroup
from stages.record.origin import Origin
from stages.record.sources import Source
from stages.report import markup, page_links

MOST_GROUPS = 1000
"""Groups that are shown: the first ones."""

LIST = "remove.txt"
"""The list of the files that can go."""

_A_PAGE = 50  # groups
_MOST_TILES = 24  # of one group


@dataclass(frozen=True)
class CopyFacts:
    """The way in which groups were found. distance: the largest between two near pictures. hash_bits: the most bits in
    which their perceptual hashes differ. metric, origin: as in the tables of pairs, "" and None if there were none.
    across: the two folders that were compared."""

    distance: float = 0.0
    metric: str = ""
    origin: Origin | None = None
    across: tuple[str, str] | None = None
    hash_bits: int = 0

    @property
    def stated(self) -> dict[str, object]:
        """The facts by name, for programs."""
        across = list(self.across) if self.across else None
        return {
            "across": across,
            "backbone": self.origin.backbone if self.origin else "",
            "hash_bits": self.hash_bits,
            "metric": self.metric,
            "model": self.origin.model if self.origin else "",
            "threshold": self.distance,
        }


@dataclass(frozen=True)
class CopyKind:
    """One kind of copies. title: of their pages. first: the name of the first page; later ones are numbered. unit: a
    group and several groups of them. lines: the name of the file that has all of them."""

    title: str
    first: str
    later: str
    unit: tuple[str, str]
    lines: str


EXACT = CopyKind(
    "Exact copies", "index.html", "page", ("group of exact copies", "groups of exact copies"), "groups.jsonl"
)
NEAR = CopyKind("Near copies", "near.html", "near", ("group of near copies", "groups of near copies"), "near.jsonl")


def draw_pages(groups: Sequence[CopyGroup]) -> set[str]:
    """The ids of the pictures that the pages show."""
    return {copy.id for group in groups[:MOST_GROUPS] for copy in group.copies[: 1 + _MOST_TILES]}


def pages(
    kind: CopyKind, groups: Sequence[CopyGroup], facts: CopyFacts, thumbnails: Mapping[str, bytes]
) -> Iterator[tuple[str, str]]:
    """The name and the text of each page, for UTF-8 files; one page says so if there are no groups. A group's number is
    that of its line in the kind's file."""
    for page in page_links.divided(groups[:MOST_GROUPS], _A_PAGE, kind.first, kind.later):
        yield (
            page.file,
            markup.fill(
                "copies.html",
                page=page,
                exact=kind is EXACT,
                lines=kind.lines,
                heading=kind.title,
                summary=_summary(kind, groups, facts),
                groups=groups,
                facts=facts,
                thumbnails=thumbnails,
                kept_first=_kept_first,
                turned=TURNED,
                most_groups=MOST_GROUPS,
                most_tiles=_MOST_TILES,
            ),
        )


def _summary(kind: CopyKind, groups: Sequence[CopyGroup], facts: CopyFacts) -> str:
    where = f" in both {facts.across[0]} and {facts.across[1]}" if facts.across else ""
    if not groups:
        return f"No {kind.title.lower()}{where or ' in the library'}"
    found = f"{counted(len(groups), *kind.unit)}{where}"
    if kind is NEAR:
        return f"{found}: look at each before you remove any"
    unneeded = counted(sum(len(group.others) for group in groups), "file", "files")
    return f"{found}; {unneeded} can go, which frees {text_format.size(sum(group.bytes for group in groups))}"


def _kept_first(group: CopyGroup) -> list[Source]:
    """The sources of the picture that is kept, its own file first."""
    return sorted(group.copies[0].sources, key=lambda each: (each != group.kept, each in group.others, each.path))
