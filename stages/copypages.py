"""The pages that show groups of copies: the picture to keep beside its copies, with sizes, dates and names.

Knows the groups' values and HTML, but no tables, no files and no Pachyderm. A page is self-contained, runs no scripts
and loads nothing; it links to the other pages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stages import markup, wording
from stages.copies import Copy, Group
from stages.markup import text
from stages.pagelinks import name
from stages.sources import Source
from stages.wording import counted

MOST_GROUPS = 1000
"""Groups that are shown: the first ones."""

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
.files b { color: var(--accent); font-weight: 600; }
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
class Facts:
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


def drawn(groups: Sequence[Group]) -> set[str]:
    """The ids of the pictures that the pages show."""
    return {copy.id for group in groups[:MOST_GROUPS] for copy in group.copies[: 1 + _MOST_TILES]}


def pages(groups: Sequence[Group], facts: Facts, thumbnails: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """The name and the text of each page, for UTF-8 files; one page says so if there are no groups. Near copies come
    before exact ones; a group's number is that of its line in groups.jsonl."""
    numbered = list(enumerate(groups[:MOST_GROUPS], start=1))
    ordered = sorted(numbered, key=lambda each: each[1].is_exact)
    parts = [ordered[begin : begin + _A_PAGE] for begin in range(0, len(ordered), _A_PAGE)] or [[]]
    for number, part in enumerate(parts, start=1):
        body = [*_head(groups, facts, number, len(parts)), "<main>", *_body(part, thumbnails), "</main>"]
        lines = [*markup.head(_title(number, len(parts)), _STYLE), *body, *_foot(facts, number, len(parts))]
        yield name(number), "\n".join([*lines, *markup.end(), ""])


def _title(number: int, count: int) -> str:
    return "Copies and near copies" if count == 1 else f"Copies and near copies, page {number} of {count}"


def _head(groups: Sequence[Group], facts: Facts, number: int, count: int) -> Iterator[str]:
    yield "<header>"
    yield "<h1>Copies and near copies</h1>"
    yield f'<p class="summary">{text(_summary(groups, facts))}</p>'
    if facts.model:
        limit = f"{facts.metric} distance up to {wording.distance(facts.distance)}, and"
        limit += f" perceptual hashes that differ in at most {facts.hash_bits} of 64 bits"
        yield '<dl class="facts">'
        yield f"<div><dt>Near</dt><dd>{text(limit)}</dd></div>"
        yield f"<div><dt>Model</dt><dd>{text(facts.backbone)} <code>{text(facts.model)}</code></dd></div>"
        yield "</dl>"
    yield from markup.items("notes", _notes(groups))
    yield from _links(number, count)
    yield "</header>"


def _summary(groups: Sequence[Group], facts: Facts) -> str:
    where = f" in both {facts.across[0]} and {facts.across[1]}" if facts.across else ""
    if not groups:
        return f"No copies{where or ' in the library'}"
    unneeded = counted(sum(len(group.removed) for group in groups), "file", "files")
    frees = wording.size(sum(group.frees for group in groups))
    return f"{counted(len(groups), 'group', 'groups')} of copies{where}; removing {unneeded} frees {frees}"


def _notes(groups: Sequence[Group]) -> Iterator[str]:
    if len(groups) > MOST_GROUPS:
        yield f"These pages show the first {MOST_GROUPS:,} of {len(groups):,} groups; groups.jsonl has all of them."


def _links(number: int, count: int) -> Iterator[str]:
    if count > 1:
        each = (
            f'<span aria-current="page">{page}</span>' if page == number else f'<a href="{name(page)}">{page}</a>'
            for page in range(1, count + 1)
        )
        yield f'<nav aria-label="Pages">Pages {" ".join(each)}</nav>'


def _body(part: Iterable[tuple[int, Group]], thumbnails: Mapping[str, bytes]) -> Iterator[str]:
    before = ""
    for number, group in part:
        kind = "Exact copies" if group.is_exact else "Near copies"
        if kind != before:
            yield f"<h2>{kind}</h2>"
            before = kind
        yield f'<section class="card" aria-label="Group {number}">'
        yield f"<h3>Group {number} <small>{text(_extent(group))}</small></h3>"
        yield from _group(number, group, thumbnails)
        yield "</section>"


def _extent(group: Group) -> str:
    return f"{counted(group.size, 'file', 'files')}; removing {len(group.removed):,} frees {wording.size(group.frees)}"


def _group(number: int, group: Group, thumbnails: Mapping[str, bytes]) -> Iterator[str]:
    first, *others = group.copies
    removed = set(group.removed)
    ordered = sorted(first.sources, key=lambda source: (source != group.kept, source in removed, source.path))
    heading = f'<p class="heading">Keep <small>{text(group.why)}</small></p>'
    if group.is_exact:
        kept = [source for source in ordered if source not in removed]
        yield f'<div class="query">{_figure(heading, first, _files(kept, removed), thumbnails)}</div>'
        yield f'<div class="exact"><p>Exact copies of it</p>{_files(group.removed, removed, _OPEN_EXACT)}</div>'
        return
    yield f'<div class="query">{_figure(heading, first, _files(ordered, removed), thumbnails)}</div>'
    yield '<div><ol class="matches">'
    for copy in others[:_MOST_TILES]:
        said = "<small>near to another copy</small>&nbsp;"
        if copy.distance is not None:
            said = f"<small>distance</small>{wording.distance(copy.distance)}"
        tile = _figure(f'<p class="heading">{said}</p>', copy, _files(copy.sources, removed), thumbnails)
        yield f"<li>{tile}</li>"
    yield "</ol>"
    if len(others) > _MOST_TILES:
        more = counted(len(others) - _MOST_TILES, "picture", "pictures")
        yield f'<p class="nothing">and {more} more: line {number} of groups.jsonl has all of them</p>'
    yield "</div>"


def _figure(heading: str, copy: Copy, files: str, thumbnails: Mapping[str, bytes]) -> str:
    picture = markup.picture(thumbnails.get(copy.id), copy.sources[0].path)
    return f"<figure>{heading}{picture}<figcaption>{files}</figcaption></figure>"


def _files(sources: Sequence[Source], removed: Collection[Source], most_open: int = _OPEN_SOURCES) -> str:
    """A list of sources with their facts, the later ones of many folded."""
    lines = [_file(source, source not in removed) for source in sources]
    if len(lines) <= most_open + 1:  # folding a single line would save no space
        return f'<ul class="files">{"".join(lines)}</ul>'
    first, rest = "".join(lines[:most_open]), "".join(lines[most_open:])
    more = f"<summary>and {counted(len(lines) - most_open, 'file', 'files')} more</summary>"
    return f'<ul class="files">{first}</ul><details>{more}<ul class="files">{rest}</ul></details>'


def _file(source: Source, kept: bool) -> str:
    facts = [f"{source.width:,} × {source.height:,}", wording.size(source.bytes), source.taken.replace("T", " ")[:16]]
    described = " · ".join(f"<span>{text(fact)}</span>" for fact in facts if fact)
    said = f"<bdi>{text(source.path)}</bdi><small>{described}</small>"
    return f'<li class="kept"><b>keep</b> {said}</li>' if kept else f"<li>{said}</li>"


def _foot(facts: Facts, number: int, count: int) -> Iterator[str]:
    yield "<footer>"
    yield from _links(number, count)
    if facts.across:
        rule = f"Pictures in {facts.across[0]} are kept; those in {facts.across[1]} are listed in"
    else:
        rule = (
            "In each group the file with the most pixels is kept, among equals the one with the most bytes, then the "
            "one taken first, then the shortest name; all others are listed in"
        )
    yield f"<p>{text(rule)} <code>remove.txt</code>, next to this page, for"
    yield "<code>lookalike remove --from remove.txt</code>. Exact copies have equal pixels at the size at which"
    yield "pictures are compared; a near copy is near to at least one other picture of its group."
    yield "<code>groups.jsonl</code> has all groups with their ids.</p>"
    yield "</footer>"
