"""The path of a trace as an SVG: boxes from both files to the answer. Its colours are the page's. Knows no server."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from pipelines.analysis.tracing import trace_text
from pipelines.analysis.tracing.traces import AnswerTrace, PictureOrigin, TracePicture, TraceStep
from stages.report import markup

WIDTH = 400
"""Units of the drawing; as wide as a phone, so that its letters can be read there."""

_BOX = 188
_LEFT, _RIGHT = 2, WIDTH - 2 - _BOX
_MIDDLE = WIDTH / 2
_THUMBNAIL = 108
_HEIGHT = 66
_GAP = 26
_ROWS = 8  # files, preprocess, the model, features, partition, index, search, render
_LETTERS = 25
"""Characters that fit into a line of a box."""

_TITLE = 20
"""Characters that fit into the first line, which is larger."""


@dataclass(frozen=True)
class PathBox:
    """A box around the middle x. kind: its class. name: in its first line. whole: what it stands for, in full, for
    pointers."""

    x: float
    top: float
    name: str
    lines: Sequence[str]
    kind: str
    whole: str
    width: int = _BOX


@dataclass(frozen=True)
class PathArrow:
    """From the lower edge of a box to the upper edge of another."""

    x: float
    y: float
    to_x: float
    to_y: float


def drawing(trace: AnswerTrace) -> Markup:
    """The SVG element. Its text alternative is its title and the table of the page."""
    tops = [_THUMBNAIL + 8 + at * (_HEIGHT + _GAP) for at in range(_ROWS)]
    parts = list(_parts(trace, tops))
    return markup.part(
        "trace.svg",
        title=trace_text.title(trace),
        width=WIDTH,
        height=tops[-1] + _HEIGHT + 4,
        side=_THUMBNAIL,
        pictures=(
            (trace.query, _LEFT + _BOX / 2, "Query"),
            (trace.neighbour, _RIGHT + _BOX / 2, f"Neighbour {trace.rank}"),
        ),
        arrows=[each for each in parts if isinstance(each, PathArrow)],
        boxes=[each for each in parts if isinstance(each, PathBox)],
        box_height=_HEIGHT,
        fitted=partial(trace_text.shortened, most=_LETTERS),
    )


def _parts(trace: AnswerTrace, tops: Sequence[int]) -> Iterator[PathBox | PathArrow]:
    """tops: of the rows below the pictures."""
    files, preprocess, model, features, partition, index, search, render = tops
    left, right = _LEFT + _BOX / 2, _RIGHT + _BOX / 2
    for picture, x in ((trace.query, left), (trace.neighbour, right)):
        yield PathArrow(x, files + _HEIGHT, x, preprocess)
        yield PathArrow(x, preprocess + _HEIGHT, x, features)
        yield from _side(picture, x, files, preprocess, features)
    yield PathArrow(_MIDDLE - 40, model + _HEIGHT, left + 50, features)
    yield PathArrow(_MIDDLE + 40, model + _HEIGHT, right - 50, features)
    yield _model(trace, model)
    yield PathArrow(right, features + _HEIGHT, right, partition)
    yield _step(trace.neighbour.origins[0].steps[-1], right, partition)
    yield PathArrow(right, partition + _HEIGHT, right, index)
    yield _step(trace.index, right, index)
    yield PathArrow(left, features + _HEIGHT, _MIDDLE - 30, search)
    yield PathArrow(right, index + _HEIGHT, _MIDDLE + 30, search)
    yield _step(trace.search, _MIDDLE, search)
    yield PathArrow(_MIDDLE, search + _HEIGHT, _MIDDLE, render)
    yield _step(trace.render, _MIDDLE, render, "answer", trace_text.answer(trace).partition(",")[0])


def _side(picture: TracePicture, x: float, files: int, preprocess: int, features: int) -> Iterator[PathBox]:
    origin: PictureOrigin = picture.origins[0]
    others = len(picture.names) - 1
    more = f" +{others}" if others else ""
    file = origin.file
    when = trace_text.moment(file.started)[:16]
    held = "in a block or archive" if file.member else f"{file.repo} repo"
    label = trace_text.shortened(origin.name.rpartition("/")[2], _TITLE - len(more)) + more
    lines = [f"{held}", f"commit {trace_text.short(file.commit)}" if file.commit else file.note, when and f"put {when}"]
    yield PathBox(x, files, label, [each for each in lines if each], "gap" if file.note else "file", origin.name)
    yield _step(origin.preprocess, x, preprocess)
    yield _step(origin.features, x, features)


def _model(trace: AnswerTrace, top: int) -> PathBox:
    file = trace.model.file
    name, _, size = trace.model.name.partition(" at ")
    lines = [
        size,
        f"hash   {trace_text.short(trace.model.sha256)}",
        f"commit {trace_text.short(file.commit)}" if file.commit else "",
    ]
    kind = "gap" if file.note else "file"
    return PathBox(
        _MIDDLE, top, trace_text.shortened(name, _TITLE - 2), list(filter(None, lines)), kind, trace.model.name, 160
    )


def _step(step: TraceStep, x: float, top: int, kind: str = "", label: str = "") -> PathBox:
    lines = [f"datum {trace_text.short(step.datum)}"] if step.datum else [step.note]
    if step.job:
        lines.append(f"job   {trace_text.short(step.job)}")
    if step.seconds is not None:
        lines.append(f"time  {trace_text.seconds(step.seconds)}")
    name = f"{step.pipeline} · {label}" if label else step.pipeline
    return PathBox(x, top, name, lines, "gap" if step.note else kind, f"{step.pipeline}:{step.path}")
