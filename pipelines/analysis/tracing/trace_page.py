"""The page of a trace, one self-contained HTML file: the path as a picture, and a table with everything in it.

Every text from outside passes through `text`; the page runs no script and loads nothing. Knows no server.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator

from pipelines.analysis.tracing import trace_svg, trace_text
from pipelines.analysis.tracing.traces import AnswerTrace, PictureTrace, TraceModel, TracePicture, TraceStep
from stages.report import markup
from stages.report.markup import text

_STYLE = """
.notes li + li { margin-top: 4px; }
td code { overflow-wrap: anywhere; }
td p { margin: 0; }
tbody tr + tr th { border-top: 1px solid var(--edge); }
td p + p { color: var(--muted); }
.checks { padding-left: 20px; font-size: 0.875rem; }
@media (max-width: 640px) {
  table, thead, tbody, tr, th, td { display: block; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  tr { padding: 8px 0; }
  tr + tr { border-top: 1px solid var(--edge); }
  th, td, tr + tr td, tbody tr td, tbody tr + tr th { padding: 2px 14px; border: 0; }
}
"""


def page(trace: AnswerTrace) -> str:
    """The page of an answer as text for a UTF-8 file."""
    head = _head(trace_text.title(trace), trace_text.answer(trace), trace)
    steps = _table(trace.model, [trace.query, trace.neighbour], (trace.index, trace.search, trace.render))
    return _whole(head, [trace_svg.drawing(trace), *steps], trace)


def picture_page(trace: PictureTrace) -> str:
    """The page of a picture of the index as text for a UTF-8 file."""
    picture = trace.picture
    title = trace_text.name(picture.names, picture.id)
    head = _head(title, "the path of this picture into the index", trace)
    seen = [f'<p><img alt="" src="data:image/jpeg;base64,{b64encode(picture.thumbnail).decode("ascii")}"></p>']
    steps = _table(trace.model, [picture], (trace.index,))
    return _whole(head, [*(seen if picture.thumbnail else []), *steps], trace)


def _whole(head: Iterable[str], body: Iterable[str], trace: AnswerTrace | PictureTrace) -> str:
    return "\n".join([*head, "<main>", *body, *_checks(trace), "</main>", *markup.end(), ""])


def _head(title: str, summary: str, trace: AnswerTrace | PictureTrace) -> Iterator[str]:
    yield from markup.head(title, trace_svg.STYLE + _STYLE)
    yield "<header>"
    yield f"<h1>{text(title)}</h1>"
    yield f'<p class="summary">{text(summary)}</p>'
    facts = {
        "Commit": f"<code>{text(trace.commit)}</code> {text(trace_text.moment(trace.began))}",
        "Model": f"{text(trace.model.name)} <code>{text(trace.model.sha256)}</code>",
    }
    told = "".join(f"<div><dt>{key}</dt><dd>{fact}</dd></div>" for key, fact in facts.items())
    yield f'<dl class="facts">{told}</dl>'
    problems = [*(f"Not true: {each.statement}." for each in trace.checks if not each.holds), *trace.gaps]
    yield from markup.items("notes", problems)
    yield "</header>"


def _table(model: TraceModel, pictures: Iterable[TracePicture], last: Iterable[TraceStep]) -> Iterator[str]:
    yield '<h2 id="steps">Every step</h2>'
    yield '<div class="table"><table aria-labelledby="steps">'
    yield '<thead><tr><th scope="col">Step</th><th scope="col">File</th><th scope="col">Origin</th></tr></thead>'
    yield "<tbody>"
    yield _row("models", model.file.path, [f"{model.name}, hash {model.sha256}", *trace_text.put(model.file)])
    for picture in pictures:
        for partition, dealt in trace_text.by_partition(picture):
            for features, origins in dealt:
                for origin in origins:
                    yield _row(origin.file.repo, origin.name, trace_text.source(origin))
                    yield _stepped(origin.preprocess)
                yield _stepped(features)
            if partition is not None:
                yield _stepped(partition)
    for step in last:
        yield _stepped(step)
    yield "</tbody></table></div>"


def _checks(trace: AnswerTrace | PictureTrace) -> Iterator[str]:
    yield f'<h2 id="checks">{text(trace_text.checked(trace).capitalize())}</h2>'
    yield '<ul class="checks">'
    yield from (f"<li>{'✓' if each.holds else '✗ not true:'} {text(each.statement)}</li>" for each in trace.checks)
    yield "</ul>"


def _stepped(step: TraceStep) -> str:
    return _row(step.pipeline, step.path, trace_text.computed(step))


def _row(step: str, file: str, facts: Iterable[str]) -> str:
    told = "".join(f"<p>{text(each)}</p>" for each in facts)
    return f'<tr><th scope="row">{text(step)}</th><td><code><bdi>{text(file)}</bdi></code></td><td>{told}</td></tr>'
