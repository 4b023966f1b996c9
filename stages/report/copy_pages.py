"""The pages that show groups of copies: the picture to keep beside its copies, with sizes, dates and names.

Exact copies and near ones have pages of their own, since only the former can go unseen.

Knows the groups' values and HTML, but no tables, no files and no Pachyderm. A page is self-contained, runs no scripts
and loads nothing; it links to the other pages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stages.datum import text_format
from stages.datum.text_format import counted
from stages.quality.copy_groups import TURNED, CopyGroup, CopyPicture
from stages.record.sources import Source
from stages.report import markup
from stages.report.markup import text

MOST_GROUPS = 1000
"""Groups that are shown: the first ones."""

LIST = "remove.txt"
"""The list of the files that can go."""

_Page = tuple[str, str]
_A_PAGE = 50  # groups
_MOST_TILES = 24  # of one group
_OPEN_SOURCES = 4  # of one picture, before the rest is unfolded
_OPEN_EXACT = 12

_STYLE = """
nav { display: flex; flex-wrap: wrap; gap: 6px 14px; margin: 18px 0 0; font-size: 0.875rem; }
nav a, header a { color: var(--accent); }
nav [aria-current] { color: var(--muted); }
.card > h3 {
  grid-column: 1 / -1; display: flex; flex-wrap: wrap; gap: 2px 14px; margin: 0; padding: 12px 20px;
  border-bottom: 1px solid var(--edge); font-size: 0.9375rem; font-weight: 600;
}
.card > h3 small { color: var(--muted); font-size: 0.875rem; font-weight: 400; }
.files { margin: 8px 0 0; padding: 0; list-style: none; font-size: 0.8125rem; line-height: 1.4; }
.files li { padding-left: 10px; border-left: 3px solid var(--edge); }
.files li + li { margin-top: 7px; }
.files li.kept { border-left-color: var(--accent); }
.files small { display: block; color: var(--muted); font-size: inherit; }
.files span { white-space: nowrap; }
.exact { padding: 20px 24px; }
.exact .files { columns: 264px; column-gap: 24px; }
.exact .files li { break-inside: avoid; }
.exact p { margin: 0; color: var(--muted); font-size: 0.875rem; }
@media (max-width: 640px) {
  .card > h3, .exact { padding-left: 16px; padding-right: 16px; }
  .query .files { margin-top: 0; }
}
"""


@dataclass(frozen=True)
class CopyFacts:
    """The way in which groups were found. distance: the largest between two near pictures. hash_bits: the most bits in
    which their perceptual hashes differ. metric, backbone, model: as in the tables of pairs, "" if there were none.
    across: the two folders that were compared."""

    distance: float = 0.0
    metric: str = ""
    backbone: str = ""
    model: str = ""
    across: tuple[str, str] | None = None
    hash_bits: int = 0

    @property
    def stated(self) -> dict[str, object]:
        """The facts by name, for programs."""
        across = list(self.across) if self.across else None
        return {
            "across": across,
            "backbone": self.backbone,
            "hash_bits": self.hash_bits,
            "metric": self.metric,
            "model": self.model,
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

    def page(self, number: int) -> str:
        """The name of a page."""
        return self.first if number == 1 else f"{self.later}-{number}.html"


EXACT = CopyKind(
    "Exact copies", "index.html", "page", ("group of exact copies", "groups of exact copies"), "groups.jsonl"
)
NEAR = CopyKind("Near copies", "near.html", "near", ("group of near copies", "groups of near copies"), "near.jsonl")


def draw_pages(groups: Sequence[CopyGroup]) -> set[str]:
    """The ids of the pictures that the pages show."""
    return {copy.id for group in groups[:MOST_GROUPS] for copy in group.copies[: 1 + _MOST_TILES]}


def pages(
    kind: CopyKind, groups: Sequence[CopyGroup], facts: CopyFacts, thumbnails: Mapping[str, bytes]
) -> Iterator[_Page]:
    """The name and the text of each page, for UTF-8 files; one page says so if there are no groups. A group's number is
    that of its line in the kind's file."""
    numbered = list(enumerate(groups[:MOST_GROUPS], start=1))
    parts = [numbered[begin : begin + _A_PAGE] for begin in range(0, len(numbered), _A_PAGE)] or [[]]
    for number, part in enumerate(parts, start=1):
        title = kind.title if len(parts) == 1 else f"{kind.title}, page {number} of {len(parts)}"
        links = list(_links(kind, number, len(parts)))
        body = [*_head(kind, groups, facts), *links, "</header>", "<main>", *_body(kind, part, thumbnails), "</main>"]
        lines = [*markup.head(title, _STYLE), *body, "<footer>", *links, *_foot(kind, facts), "</footer>"]
        yield kind.page(number), "\n".join([*lines, *markup.end(), ""])


def _head(kind: CopyKind, groups: Sequence[CopyGroup], facts: CopyFacts) -> Iterator[str]:
    yield "<header>"
    yield f"<h1>{kind.title}</h1>"
    yield f'<p class="summary">{text(_summary(kind, groups, facts))}</p>'
    if len(groups) > MOST_GROUPS:
        shown = f"These pages show the first {MOST_GROUPS:,} of {len(groups):,} groups; {kind.lines} has all of them."
        yield from markup.items("notes", [shown])


def _summary(kind: CopyKind, groups: Sequence[CopyGroup], facts: CopyFacts) -> str:
    where = f" in both {facts.across[0]} and {facts.across[1]}" if facts.across else ""
    if not groups:
        return f"No {kind.title.lower()}{where or ' in the library'}"
    found = f"{counted(len(groups), *kind.unit)}{where}"
    if kind is NEAR:
        return f"{found}: look at each before you remove any"
    unneeded = counted(sum(len(group.others) for group in groups), "file", "files")
    return f"{found}; {unneeded} can go, which frees {text_format.size(sum(group.bytes for group in groups))}"


def _links(kind: CopyKind, number: int, count: int) -> Iterator[str]:
    if count > 1:
        each = (
            f'<span aria-current="page">{page}</span>' if page == number else f'<a href="{kind.page(page)}">{page}</a>'
            for page in range(1, count + 1)
        )
        yield f'<nav aria-label="Pages">Pages {" ".join(each)}</nav>'


def _body(kind: CopyKind, part: Iterable[tuple[int, CopyGroup]], thumbnails: Mapping[str, bytes]) -> Iterator[str]:
    for number, group in part:
        yield f'<section class="card" aria-label="Group {number}">'
        yield f"<h3>Group {number} <small>{text(_extent(kind, group))}</small></h3>"
        yield from _group(kind, number, group, thumbnails)
        yield "</section>"


def _extent(kind: CopyKind, group: CopyGroup) -> str:
    files = counted(group.size, "file", "files")
    return (
        files if kind is NEAR else f"{files}; {len(group.others):,} can go, which frees {text_format.size(group.bytes)}"
    )


def _group(kind: CopyKind, number: int, group: CopyGroup, thumbnails: Mapping[str, bytes]) -> Iterator[str]:
    first, *rest = group.copies
    others = set(group.others)
    ordered = sorted(first.sources, key=lambda source: (source != group.kept, source in others, source.path))
    heading = f'<p class="heading">{_KEPT[kind]} <small>{text(group.why)}</small></p>'
    if kind is EXACT:
        kept = [source for source in ordered if source not in others]
        yield f'<div class="query">{_figure(heading, first, _files(kept, others), thumbnails)}</div>'
        yield f'<div class="exact"><p>The same picture again</p>{_files(group.others, others, _OPEN_EXACT)}</div>'
        return
    yield f'<div class="query">{_figure(heading, first, _files(ordered, others), thumbnails)}</div>'
    yield '<div><ol class="matches">'
    for copy in rest[:_MOST_TILES]:
        tile = _figure(
            f'<p class="heading">{text(_relation(copy))}</p>', copy, _files(copy.sources, others), thumbnails
        )
        yield f"<li>{tile}</li>"
    yield "</ol>"
    if len(rest) > _MOST_TILES:
        more = counted(len(rest) - _MOST_TILES, "picture", "pictures")
        yield f'<p class="nothing">and {more} more: line {number} of {kind.lines} has all of them</p>'
    yield "</div>"


_KEPT = {EXACT: "Keep", NEAR: "Probably the original"}


def _relation(copy: CopyPicture) -> str:
    """A near copy beside the kept picture, in words."""
    return f"near copy, {TURNED[copy.turn]}" if copy.turn else "near copy"


def _figure(heading: str, copy: CopyPicture, files: str, thumbnails: Mapping[str, bytes]) -> str:
    picture = markup.picture(thumbnails.get(copy.id), copy.sources[0].path)
    return f"<figure>{heading}{picture}<figcaption>{files}</figcaption></figure>"


def _files(sources: Sequence[Source], others: Collection[Source], most_open: int = _OPEN_SOURCES) -> str:
    """A list of sources with their facts, the later ones of many folded."""
    lines = [_file(source, source not in others) for source in sources]
    if len(lines) <= most_open + 1:  # folding a single line would save no space
        return f'<ul class="files">{"".join(lines)}</ul>'
    first, rest = "".join(lines[:most_open]), "".join(lines[most_open:])
    more = f"<summary>and {counted(len(lines) - most_open, 'file', 'files')} more</summary>"
    return f'<ul class="files">{first}</ul><details>{more}<ul class="files">{rest}</ul></details>'


def _file(source: Source, kept: bool) -> str:
    facts = [
        f"{source.width:,} × {source.height:,}",
        text_format.size(source.bytes),
        source.taken.replace("T", " ")[:16],
    ]
    described = " · ".join(f"<span>{text(fact)}</span>" for fact in facts if fact)
    said = f"<bdi>{text(source.path)}</bdi><small>{described}</small>"
    return f'<li class="kept">{said}</li>' if kept else f"<li>{said}</li>"


_RULE = (
    "A camera's RAW file is kept before all others, then a file with the camera's date, a lossless one, and the one "
    "with the most pixels, the most bytes, the earliest date, the shortest name"
)


def _foot(kind: CopyKind, facts: CopyFacts) -> Iterator[str]:
    if kind is NEAR:
        yield "<p>Near copies look as if a program had scaled, compressed, turned or cropped a picture, or changed its"
        yield "brightness or colours. They may differ in what a small picture does not show, so no list names them for"
        yield "removal. Pages, signs and drawings are left out, since different ones look alike.</p>"
        yield f"<p>{text(_RULE)}. <code>near.jsonl</code> has all groups with their ids.</p>"
        return
    rule = f"Pictures in {facts.across[0]} are kept" if facts.across else _RULE
    yield "<p>Exact copies have equal bytes, or decode to equal pixels at full size; their metadata may differ."
    yield f"{text(rule)}. All others are listed in <code>{LIST}</code>, next to this page, for"
    yield f"<code>lookalike remove --from {LIST}</code>. <code>groups.jsonl</code> has all groups with their ids.</p>"
