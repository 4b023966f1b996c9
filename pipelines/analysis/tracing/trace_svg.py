"""The path of a trace as an SVG: boxes from both files to the answer. Its colours are the page's. Knows no server."""

from base64 import b64encode
from collections.abc import Iterator

from pipelines.analysis.tracing import trace_text
from pipelines.analysis.tracing.traces import AnswerTrace, PictureOrigin, TracePicture, TraceStep
from stages.report.markup import text

WIDTH = 400
"""Units of the drawing; as wide as a phone, so that its letters can be read there."""

_BOX = 188
_LEFT, _RIGHT = 2, WIDTH - 2 - _BOX
_MIDDLE = WIDTH / 2
_THUMBNAIL = 108
_HEIGHT = 66
_GAP = 26
_LETTERS = 25
"""Characters that fit into a line of a box."""

_TITLE = 20
"""Characters that fit into the first line, which is larger."""

STYLE = """
.path { display: block; width: 100%; max-width: 620px; height: auto; margin: 20px auto; }
.path rect { fill: var(--card); stroke: var(--edge); }
.path rect.file { fill: var(--tint); }
.path rect.answer { stroke: var(--accent); stroke-width: 2; }
.path rect.gap { stroke: var(--note); stroke-dasharray: 4 3; }
.path text { font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.path text { fill: var(--muted); white-space: pre; }
.path text.name { font: 600 13px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
.path text.name { fill: var(--ink); }
.path path { fill: none; stroke: var(--muted); stroke-width: 1.5; }
.path marker path { fill: var(--muted); stroke: none; }
"""


def drawing(trace: AnswerTrace) -> str:
    """The SVG element. Its text alternative is its title and the table of the page."""
    parts = list(_parts(trace))
    height = _rows(trace)[-1] + _HEIGHT + 4
    title = (
        f"The path from {trace_text.title(trace)}: both files, the pipelines and the model between them, and the answer"
    )
    head = f'<svg class="path" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="path-title">'
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    return "\n".join([head, f'<title id="path-title">{text(title)}</title>', marker, *parts, "</svg>"])


def _partition(trace: AnswerTrace) -> TraceStep | None:
    """The step of partition that is drawn; earlier versions did not have one."""
    return trace.neighbour.origins[0].partition


def _rows(trace: AnswerTrace) -> list[int]:
    """The tops of the rows: pictures, files, preprocess, the model, features, partition if there is one, index, search,
    render."""
    tops = [0, _THUMBNAIL + 8]
    for _ in range(6 if _partition(trace) is None else 7):
        tops.append(tops[-1] + _HEIGHT + _GAP)
    return tops


def _parts(trace: AnswerTrace) -> Iterator[str]:
    pictures, files, preprocess, model, features, *dealt, index, search, render = _rows(trace)
    left, right = _LEFT + _BOX / 2, _RIGHT + _BOX / 2
    yield _thumbnail(trace.query, left, pictures, "Query")
    yield _thumbnail(trace.neighbour, right, pictures, f"Neighbour {trace.rank}")
    for picture, x in ((trace.query, left), (trace.neighbour, right)):
        yield _arrow(x, files + _HEIGHT, x, preprocess)
        yield _arrow(x, preprocess + _HEIGHT, x, features)
        yield from _side(picture, x, files, preprocess, features)
    yield _arrow(_MIDDLE - 40, model + _HEIGHT, left + 50, features)
    yield _arrow(_MIDDLE + 40, model + _HEIGHT, right - 50, features)
    yield _model(trace, model)
    partition, above = _partition(trace), features
    if partition is not None:
        (above,) = dealt
        yield _arrow(right, features + _HEIGHT, right, above)
        yield _step(partition, right, above)
    yield _arrow(right, above + _HEIGHT, right, index)
    yield _step(trace.index, right, index)
    yield _arrow(left, features + _HEIGHT, _MIDDLE - 30, search)
    yield _arrow(right, index + _HEIGHT, _MIDDLE + 30, search)
    yield _step(trace.search, _MIDDLE, search)
    yield _arrow(_MIDDLE, search + _HEIGHT, _MIDDLE, render)
    yield _step(trace.render, _MIDDLE, render, "answer", trace_text.answer(trace).partition(",")[0])


def _side(picture: TracePicture, x: float, files: int, preprocess: int, features: int) -> Iterator[str]:
    origin: PictureOrigin = picture.origins[0]
    others = len(picture.names) - 1
    more = f" +{others}" if others else ""
    file = origin.file
    when = trace_text.moment(file.started)[:16]
    held = "in a block or archive" if file.member else f"{file.repo} repo"
    label = trace_text.shortened(origin.name.rpartition("/")[2], _TITLE - len(more)) + more
    lines = [f"{held}", f"commit {trace_text.short(file.commit)}" if file.commit else file.note, when and f"put {when}"]
    yield _box(x, files, label, [each for each in lines if each], "gap" if file.note else "file", origin.name)
    yield _step(origin.preprocess, x, preprocess)
    yield _step(origin.features, x, features)


def _model(trace: AnswerTrace, top: int) -> str:
    file = trace.model.file
    name, _, size = trace.model.name.partition(" at ")
    lines = [
        size,
        f"hash   {trace_text.short(trace.model.sha256)}",
        f"commit {trace_text.short(file.commit)}" if file.commit else "",
    ]
    kind = "gap" if file.note else "file"
    return _box(
        _MIDDLE, top, trace_text.shortened(name, _TITLE - 2), list(filter(None, lines)), kind, trace.model.name, 160
    )


def _step(step: TraceStep, x: float, top: int, kind: str = "", label: str = "") -> str:
    lines = [f"datum {trace_text.short(step.datum)}"] if step.datum else [step.note]
    if step.job:
        lines.append(f"job   {trace_text.short(step.job)}")
    if step.seconds is not None:
        lines.append(f"time  {trace_text.seconds(step.seconds)}")
    name = f"{step.pipeline} · {label}" if label else step.pipeline
    return _box(x, top, name, lines, "gap" if step.note else kind, f"{step.pipeline}:{step.path}")


def _box(x: float, top: int, name: str, lines: list[str], kind: str, whole: str, width: int = _BOX) -> str:
    """A box around the middle `x`. whole: what it stands for, in full, for pointers."""
    start = x - width / 2
    drawn = [f'<rect class="{kind}" x="{start}" y="{top}" width="{width}" height="{_HEIGHT}" rx="9"/>']
    drawn.append(f'<text class="name" x="{start + 10}" y="{top + 19}">{text(name)}</text>')
    for number, line in enumerate(lines[:3]):
        said = text(trace_text.shortened(line, _LETTERS))
        drawn.append(f'<text x="{start + 10}" y="{top + 34 + 12 * number}">{said}</text>')
    return f"<g><title>{text(whole)}</title>{''.join(drawn)}</g>"


def _thumbnail(picture: TracePicture, x: float, top: int, alternative: str) -> str:
    place = f'x="{x - _THUMBNAIL / 2}" y="{top}" width="{_THUMBNAIL}" height="{_THUMBNAIL}"'
    if not picture.thumbnail:
        return f'<rect {place} rx="9"/><text x="{x - 32}" y="{top + _THUMBNAIL / 2}">no preview</text>'
    data = b64encode(picture.thumbnail).decode("ascii")
    return f'<image {place} href="data:image/jpeg;base64,{data}"><title>{text(alternative)}</title></image>'


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    half = (y + to_y) / 2
    curve = f"M{x} {y}L{to_x} {to_y - 2}" if x == to_x else f"M{x} {y}C{x} {half} {to_x} {half} {to_x} {to_y - 2}"
    return f'<path d="{curve}" marker-end="url(#tip)"/>'
