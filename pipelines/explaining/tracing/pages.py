"""The page of a trace, one self-contained HTML file: the path as a picture, and a table with everything in it.

Every text from outside passes through `text`; the page runs no script and loads nothing. Knows no server.
"""

from collections.abc import Iterable, Iterator

from pipelines.explaining.tracing import drawing, words
from pipelines.explaining.tracing.traces import Step, Trace
from stages import markup
from stages.markup import text

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


def page(trace: Trace) -> str:
    """The page as text for a UTF-8 file."""
    return "\n".join([*_head(trace), "<main>", *_body(trace), "</main>", *markup.end(), ""])


def _head(trace: Trace) -> Iterator[str]:
    yield from markup.head(words.title(trace), drawing.STYLE + _STYLE)
    yield "<header>"
    yield f"<h1>{text(words.title(trace))}</h1>"
    yield f'<p class="summary">{text(words.answer(trace))}</p>'
    facts = {
        "Commit": f"<code>{text(trace.commit)}</code> {text(words.moment(trace.began))}",
        "Model": f"{text(trace.model.name)} <code>{text(trace.model.sha256)}</code>",
    }
    told = "".join(f"<div><dt>{key}</dt><dd>{fact}</dd></div>" for key, fact in facts.items())
    yield f'<dl class="facts">{told}</dl>'
    problems = [*(f"Not true: {each.statement}." for each in trace.checks if not each.holds), *trace.gaps]
    yield from markup.items("notes", problems)
    yield "</header>"


def _body(trace: Trace) -> Iterator[str]:
    yield drawing.drawing(trace)
    yield '<h2 id="steps">Every step</h2>'
    yield '<div class="table"><table aria-labelledby="steps">'
    yield '<thead><tr><th scope="col">Step</th><th scope="col">File</th><th scope="col">Origin</th></tr></thead>'
    yield "<tbody>"
    model = trace.model
    yield _row("models", model.file.path, [f"{model.name}, hash {model.sha256}", *words.put(model.file)])
    for picture in (trace.query, trace.neighbour):
        for features, origins in words.by_features(picture):
            for origin in origins:
                yield _row(origin.file.repo, origin.name, words.source(origin))
                yield _stepped(origin.preprocess)
            yield _stepped(features)
    for step in (trace.index, trace.search, trace.render):
        yield _stepped(step)
    yield "</tbody></table></div>"
    yield f'<h2 id="checks">{text(words.checked(trace).capitalize())}</h2>'
    yield '<ul class="checks">'
    yield from (f"<li>{'✓' if each.holds else '✗ not true:'} {text(each.statement)}</li>" for each in trace.checks)
    yield "</ul>"


def _stepped(step: Step) -> str:
    return _row(step.pipeline, step.path, words.computed(step))


def _row(step: str, file: str, facts: Iterable[str]) -> str:
    told = "".join(f"<p>{text(each)}</p>" for each in facts)
    return f'<tr><th scope="row">{text(step)}</th><td><code><bdi>{text(file)}</bdi></code></td><td>{told}</td></tr>'
