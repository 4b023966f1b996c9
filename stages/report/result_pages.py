"""The result pages, self-contained HTML files: all queries of an entry with their K nearest and all sources.

Knows the answers' values and HTML, but no tables, no files and no Pachyderm. Every text from outside passes through
`text`; a page runs no scripts, and its policy lets it load nothing. It links to the files beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stages.datum import text_format
from stages.files.packs import Rejection
from stages.quality.entry_answers import EntryAnswers, QueryAnswer, QueryMatch
from stages.record.sources import paths
from stages.report import captions, page_links
from stages.report.markup import end, head, items, picture, text

_OPEN_SOURCES = 4  # sources of one picture that are visible before the rest is unfolded

MOST_QUERIES = 100
"""Queries on one page, at most."""

_MOST_PICTURES = 4 * MOST_QUERIES
"""Pictures on one page: fewer queries if K is large."""


def pages(answers: EntryAnswers) -> Iterator[tuple[str, str]]:
    """The name and the text of each page, for UTF-8 files: the queries whose neighbours have pictures come first, then
    the others, both ordered by their names.

    The first page also reports problems: rejected files with their reasons, an empty or too small library, an entry
    without a picture to search for.
    """
    ordered = sorted(answers.answers, key=lambda each: (not each.pictured, paths(each.sources), each.query))
    most = max(1, min(MOST_QUERIES, _MOST_PICTURES // (answers.k + 1)))
    parts = [ordered[begin : begin + most] for begin in range(0, len(ordered), most)] or [[]]
    before = 0
    for number, part in enumerate(parts, start=1):
        links = [*page_links.links(number, len(parts))]
        top = [*_head(answers, number, len(parts)), *_range(part, before, len(ordered)), *links, "</header>"]
        body = ["<main>", *_body(part), *(_rejected(answers.rejected) if number == 1 else ()), "</main>"]
        yield page_links.name(number), "\n".join([*top, *body, *_foot(answers, links), ""])
        before += len(part)


def _head(answers: EntryAnswers, number: int, count: int) -> Iterator[str]:
    title = captions.title(answers)
    yield from head(title if count == 1 else f"{title}, page {number:,} of {count:,}", page_links.STYLE)
    yield "<header>"
    yield f"<h1>{text(title)}</h1>"
    if answers.answers:
        yield f'<p class="summary">{text(captions.summary(answers, len(answers.answers), answers.k))}</p>'
    yield '<dl class="facts">'
    if answers.model is not None:
        yield f"<div><dt>Model</dt><dd>{text(answers.backbone)} <code>{text(answers.model)}</code></dd></div>"
    yield f"<div><dt>Files</dt><dd>{' '.join(_file(each) for each in ('neighbors.jsonl', 'grid.png'))}</dd></div>"
    yield "</dl>"
    if number == 1:
        yield from items("notes", captions.notes(answers))


def _range(part: Sequence[QueryAnswer], before: int, total: int) -> Iterator[str]:
    """The queries of a page, if there are others."""
    if len(part) < total:
        names = f"<bdi>{text(captions.name(part[0]))}</bdi> to <bdi>{text(captions.name(part[-1]))}</bdi>"
        numbers = f"{before + 1:,} to {before + len(part):,} of {total:,}"
        yield f'<p class="range">Queries {numbers}: {names}</p>'


def _body(shown: Iterable[QueryAnswer]) -> Iterator[str]:
    for answer in shown:
        yield f'<section class="card" aria-label="Query {text(captions.name(answer))}">'
        yield f'<div class="query">{_query(answer)}</div>'
        if answer.matches:
            yield '<ol class="matches">'
            yield from (f"<li>{_match(match, rank, answer)}</li>" for rank, match in enumerate(answer.matches, start=1))
            yield "</ol>"
        else:
            yield '<p class="nothing">The library has no pictures to compare with.</p>'
        yield "</section>"


def _query(answer: QueryAnswer) -> str:
    return _figure('<p class="heading">Query</p>', f"Query picture {captions.name(answer)}", answer)


def _match(match: QueryMatch, rank: int, answer: QueryAnswer) -> str:
    same = '<small class="same">same picture</small>' if match.id == answer.query else ""
    said = text_format.distance(match.distance)
    heading = f'<p class="heading"><small>distance</small>{said}{same}</p>'
    if not answer.pictured:
        return f"{heading}{_sources(match)}"
    return _figure(heading, f"Neighbour {rank}: {captions.name(match)}", match)


def _figure(heading: str, alternative: str, pictured: QueryAnswer | QueryMatch) -> str:
    drawn = picture(pictured.thumbnail, alternative)
    return f"<figure>{heading}{drawn}<figcaption>{_sources(pictured)}</figcaption></figure>"


def _sources(pictured: QueryAnswer | QueryMatch) -> str:
    names = paths(pictured.sources) or [captions.UNNAMED]
    first, rest = names[:_OPEN_SOURCES], names[_OPEN_SOURCES:]
    if len(rest) == 1:  # folding a single line would save no space
        first, rest = names, []
    open_part = "".join(items("sources", first))
    if not rest:
        return open_part
    folded = "".join(items("sources", rest))
    return f"{open_part}<details><summary>and {len(rest):,} more names</summary>{folded}</details>"


def _rejected(rejected: Sequence[Rejection]) -> Iterator[str]:
    if not rejected:
        return
    yield '<h2 id="rejected">Rejected files</h2>'
    yield '<div class="table"><table aria-labelledby="rejected">'
    yield '<thead><tr><th scope="col">File</th><th scope="col">Reason</th><th scope="col">Stage</th></tr></thead>'
    yield "<tbody>"
    for each in rejected:
        cells = (f"<bdi>{text(each.source)}</bdi>", text(each.reason), text(each.stage))
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    yield "</tbody></table></div>"


def _file(beside: str) -> str:
    return f'<a href="{beside}">{beside}</a>'


def _foot(answers: EntryAnswers, links: Iterable[str]) -> Iterator[str]:
    yield "<footer>"
    yield from links
    yield "<p>"
    yield from map(text, captions.framing(answers))
    yield "Equal pictures count as one neighbour with all their names."
    yield f"{_file('neighbors.jsonl')}, next to this page, lists all queries by id."
    yield "</p></footer>"
    yield from end()
