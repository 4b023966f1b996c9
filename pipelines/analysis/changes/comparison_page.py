"""Two moments side by side as one self-contained HTML file: for each query the old row of neighbours above the new one,
with the reason at each picture that differs.

Pure: takes values and returns text. Every text from outside passes through `text`; the page runs no scripts and loads
nothing.
"""

from collections.abc import Iterator, Mapping, Sequence

from pipelines.analysis.changes.answer_comparison import AnswerComparison, QueryDifference
from pipelines.analysis.changes.comparison_text import changed, moment, reasons, summary
from pipelines.analysis.changes.difference_reasons import (
    ADDED,
    MODEL,
    PARAMETERS,
    QUERY,
    REMOVED,
    REPLACED,
    SHIFTED,
    NeighbourDifference,
)
from pipelines.analysis.changes.query_answers import AnswerNeighbour, QueryAnswer
from stages.datum.text_format import counted, distance
from stages.report import markup
from stages.report.markup import text

EntryThumbnails = Mapping[tuple[str, str], bytes]
"""JPEG files by the moment, "old" or "new", and the id."""

_MOST_NAMED = 20
_KINDS = {ADDED: "good", REMOVED: "bad", REPLACED: "other"}

_STYLE = """
:root { --good: #17663a; --good-paper: #e4f5ea; --bad: #a1260d; --bad-paper: #fdeae6; }
@media (prefers-color-scheme: dark) {
  :root { --good: #7fdca4; --good-paper: #14301f; --bad: #ffab98; --bad-paper: #3a1a14; }
}
@media (min-width: 641px) { .card { grid-template-columns: 176px minmax(0, 1fr); } }
.query { padding: 16px; }
.rows { padding: 12px 20px 16px; min-width: 0; }
.row { margin: 0; padding: 0; }
.row + .row { margin-top: 10px; padding-top: 10px; border-top: 1px solid var(--edge); }
.row h3 { margin: 0 0 6px; font-size: 0.8125rem; font-weight: 500; color: var(--muted); }
.row ol { display: flex; gap: 14px; margin: 0; padding: 3px 3px 8px; list-style: none; overflow-x: auto; }
.row li { flex: 0 0 132px; }
.row img, .row .blank { max-width: 132px; }
.row .heading { margin: 0 0 4px; font-size: 0.875rem; gap: 0 6px; }
.row .sources { margin-top: 4px; font-size: 0.75rem; }
.row li.same img { opacity: 0.5; }
.row li.same:hover img { opacity: 1; }
.row li.good img, .row li.good .blank { outline: 3px solid var(--good); }
.row li.bad img, .row li.bad .blank { outline: 3px solid var(--bad); }
.row li.other img, .row li.other .blank { outline: 3px solid var(--accent); }
.why { margin: 6px 0 0; padding: 3px 8px; border-radius: 8px; font-size: 0.75rem; line-height: 1.35; overflow-wrap: anywhere; }
.same .why { background: none; padding: 0; color: var(--muted); }
.good .why { background: var(--good-paper); color: var(--good); }
.bad .why { background: var(--bad-paper); color: var(--bad); }
.other .why { background: var(--tint); color: var(--accent); }
.query img, .query .blank { max-width: 144px; }
.facts li { margin: 2px 0; }
ul.facts { margin: 12px 0 0; padding: 0 0 0 20px; }
@media (max-width: 640px) { .rows { padding: 12px 16px; } .row li { flex-basis: 112px; } }
"""  # noqa: E501  CSS


def page(
    comparison: AnswerComparison,
    shown: Sequence[QueryDifference],
    names: Mapping[str, str],
    thumbnails: EntryThumbnails,
) -> str:
    """The page as text for a UTF-8 file, with the questions `shown`. names: of entries, by their PFS names."""
    return "\n".join(
        [
            *_head(comparison, len(shown)),
            "<main>",
            *(line for each in shown for line in _question(each, names, thumbnails)),
            *_apart("Queries that are new", comparison.new_queries),
            *_apart("Queries that are gone", comparison.gone_queries),
            "</main>",
            "<footer><p>Pictures in both rows are dimmed if only their places differ. Equal pictures count as one.</p>",
            "</footer>",
            *markup.end(),
            "",
        ]
    )


def _head(comparison: AnswerComparison, shown: int) -> Iterator[str]:
    title = "Answers before and after"
    yield from markup.head(title, _STYLE)
    yield f"<header><h1>{title}</h1>"
    yield f'<p class="summary">{text(summary(comparison))}</p><dl class="facts">'
    for name, state in (("Before", comparison.old), ("After", comparison.new)):
        yield f"<div><dt>{name}</dt><dd>{text(moment(state))}</dd></div>"
    yield '</dl><ul class="facts">'
    yield from (f"<li><bdi>{text(line)}</bdi></li>" for line in (*changed(comparison), *reasons(comparison)))
    yield "</ul>"
    if shown < len(comparison.questions):
        yield f'<ul class="notes"><li>Shown: {shown:,} of {len(comparison.questions):,}, those with the most '
        yield "differences first. <code>lookalike diff --json</code> lists all of them.</li></ul>"
    yield "</header>"


def _question(question: QueryDifference, names: Mapping[str, str], thumbnails: EntryThumbnails) -> Iterator[str]:
    two = question.two
    before = {id(each.old): each for each in question.differences if each.old is not None}
    after = {id(each.new): each for each in question.differences if each.new is not None}
    name = _name(two.new) or names.get(question.entry, question.entry)
    picture = thumbnails.get(("new", two.new.id)) or thumbnails.get(("old", two.old.id))
    yield f'<section class="card" aria-label="Query {text(name)}">'
    yield f'<div class="query"><figure><p class="heading">Query</p>{markup.picture(picture, f"Query picture {name}")}'
    yield f"<figcaption>{_sources(two.new.sources or (name,))}</figcaption></figure></div>"
    yield '<div class="rows">'
    for heading, reply, marked, when in (("before", two.old, before, "old"), ("after", two.new, after, "new")):
        yield f'<div class="row"><h3>{heading}</h3><ol>'
        for rank, tile in enumerate(reply.tiles, 1):
            yield _tile(tile, rank, marked.get(id(tile)), thumbnails.get((when, tile.id)))
        yield "</ol></div>"
    yield "</div></section>"


def _tile(tile: AnswerNeighbour, rank: int, difference: NeighbourDifference | None, thumbnail: bytes | None) -> str:
    name = tile.sources[0] if tile.sources else tile.id[:12]
    heading = f'<p class="heading"><small>{rank}</small>{distance(tile.distance)}</p>'
    picture = markup.picture(thumbnail, f"Neighbour {rank}: {name}")
    figure = f"{heading}{picture}<figcaption>{_sources(tile.sources)}</figcaption>"
    if difference is None:
        return f'<li class="same"><figure>{figure}</figure></li>'
    if difference.reasons[0][0] == SHIFTED:
        said = f'<p class="why">was {difference.old_rank}</p>' if tile is difference.new else ""
        return f'<li class="same"><figure>{figure}</figure>{said}</li>'
    kind = _KINDS.get(difference.reasons[0][0], "other")
    return f'<li class="{kind}"><figure>{figure}</figure>{_why(difference)}</li>'


def _why(difference: NeighbourDifference) -> str:
    said = "; ".join(
        words if reason in (MODEL, PARAMETERS, QUERY) else f"{reason} {words}".rstrip()
        for reason, words in difference.reasons
    )
    if difference.old_rank is None:
        said = f"new: {said}"
    elif difference.new_rank is None:
        said = f"gone: {said}"
    else:
        said = f"{difference.old_rank} → {difference.new_rank}: {said}"
    return f'<p class="why">{text(said)}</p>'


def _sources(names: Sequence[str]) -> str:
    more = f"<li>and {counted(len(names) - 2, 'more name', 'more names')}</li>" if len(names) > 2 else ""
    return f'<ul class="sources">{"".join(f"<li><bdi>{text(each)}</bdi></li>" for each in names[:2])}{more}</ul>'


def _apart(title: str, replies: Sequence[QueryAnswer]) -> Iterator[str]:
    if replies:
        yield f"<h2>{title}</h2><ul>"
        yield from (f"<li><bdi>{text(_name(each) or each.id[:12])}</bdi></li>" for each in replies[:_MOST_NAMED])
        rest = len(replies) - _MOST_NAMED
        yield (f"<li>and {counted(rest, 'more', 'more')}</li>" if rest > 0 else "") + "</ul>"


def _name(reply: QueryAnswer) -> str:
    return reply.sources[0] if reply.sources else ""
