"""The result page, one self-contained HTML file: all shown queries with their K nearest and all sources.

Knows the answers' values and HTML, but no tables, no files and no Pachyderm. Every text from outside passes through
`text`; the page runs no scripts, and its policy lets it load nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stages import captions, wording
from stages.answers import Answer, Answers, Match
from stages.markup import end, head, items, picture, text
from stages.packs import Rejection
from stages.sources import paths

_OPEN_SOURCES = 4  # sources of one picture that are visible before the rest is unfolded


def page(answers: Answers, queries: Sequence[str]) -> str:
    """The page as text for a UTF-8 file, showing the `queries` (their ids), ordered by their names.

    Also reports problems: rejected files with their reasons, an empty or too small library, an entry without a picture
    to search for.
    """
    by_id = {answer.query: answer for answer in answers.answers}
    shown = sorted((by_id[query] for query in queries), key=lambda answer: (paths(answer.sources), answer.query))
    return "\n".join([*_head(answers, len(shown)), "<main>", *_body(answers, shown), "</main>", *_foot(answers), ""])


def _head(answers: Answers, shown: int) -> Iterator[str]:
    title = captions.title(answers)
    yield from head(title)
    yield "<header>"
    yield f"<h1>{text(title)}</h1>"
    if answers.answers:
        yield f'<p class="summary">{text(captions.summary(answers, shown, answers.k))}</p>'
    if answers.model is not None:
        named = f"{text(answers.backbone)} <code>{text(answers.model)}</code>"
        yield f'<dl class="facts"><div><dt>Model</dt><dd>{named}</dd></div></dl>'
    yield from items("notes", captions.notes(answers, shown))
    yield "</header>"


def _body(answers: Answers, shown: Iterable[Answer]) -> Iterator[str]:
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
    if answers.rejected:
        yield from _rejected(answers.rejected)


def _query(answer: Answer) -> str:
    return _figure('<p class="heading">Query</p>', f"Query picture {captions.name(answer)}", answer)


def _match(match: Match, rank: int, answer: Answer) -> str:
    same = '<small class="same">same picture</small>' if match.id == answer.query else ""
    said = wording.distance(match.distance)
    heading = f'<p class="heading"><small>distance</small>{said}{same}</p>'
    return _figure(heading, f"Neighbour {rank}: {captions.name(match)}", match)


def _figure(heading: str, alternative: str, pictured: Answer | Match) -> str:
    drawn = picture(pictured.thumbnail, alternative)
    return f"<figure>{heading}{drawn}<figcaption>{_sources(pictured)}</figcaption></figure>"


def _sources(pictured: Answer | Match) -> str:
    names = paths(pictured.sources) or [captions.UNNAMED]
    first, rest = names[:_OPEN_SOURCES], names[_OPEN_SOURCES:]
    if len(rest) == 1:  # folding a single line would save no space
        first, rest = names, []
    open_part = "".join(items("sources", first))
    if not rest:
        return open_part
    folded = "".join(items("sources", rest))
    return f"{open_part}<details><summary>and {len(rest):,} more names</summary>{folded}</details>"


def _rejected(rejected: Iterable[Rejection]) -> Iterator[str]:
    yield '<h2 id="rejected">Rejected files</h2>'
    yield '<div class="table"><table aria-labelledby="rejected">'
    yield '<thead><tr><th scope="col">File</th><th scope="col">Reason</th><th scope="col">Stage</th></tr></thead>'
    yield "<tbody>"
    for each in rejected:
        cells = (f"<bdi>{text(each.source)}</bdi>", text(each.reason), text(each.stage))
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    yield "</tbody></table></div>"


def _foot(answers: Answers) -> Iterator[str]:
    yield "<footer><p>"
    yield from map(text, captions.framing(answers))
    yield "Equal pictures count as one neighbour with all their names. <code>neighbors.jsonl</code>, next to this page,"
    yield "lists them all by id."
    yield "</p></footer>"
    yield from end()
