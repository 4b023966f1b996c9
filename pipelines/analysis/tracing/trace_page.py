"""The page of a trace, one self-contained HTML file: the path as a picture, and a table with everything in it. Knows no
server."""

from collections.abc import Iterable, Iterator

from markupsafe import Markup

from pipelines.analysis.tracing import trace_svg, trace_text
from pipelines.analysis.tracing.traces import AnswerTrace, PictureTrace, TraceModel, TracePicture, TraceStep
from stages.report import markup

_Row = tuple[str, str, Iterable[str]]
"""A step, a file, and facts."""


def page(trace: AnswerTrace) -> str:
    """The page of an answer as text for a UTF-8 file."""
    steps = _rows(trace.model, [trace.query, trace.neighbour], (trace.index, trace.search, trace.render))
    return _page(trace, trace_text.title(trace), trace_text.answer(trace), steps, drawing=trace_svg.drawing(trace))


def picture_page(trace: PictureTrace) -> str:
    """The page of a picture of the index as text for a UTF-8 file."""
    picture = trace.picture
    title = trace_text.name(picture.names, picture.id)
    steps = _rows(trace.model, [picture], (trace.index,))
    return _page(trace, title, "the path of this picture into the index", steps, thumbnail=picture.thumbnail)


def _page(
    trace: AnswerTrace | PictureTrace,
    title: str,
    summary: str,
    steps: Iterator[_Row],
    drawing: Markup | None = None,
    thumbnail: bytes = b"",
) -> str:
    return markup.fill(
        "trace.html",
        trace=trace,
        heading=title,
        summary=summary,
        moment=trace_text.moment(trace.began),
        drawing=drawing,
        thumbnail=thumbnail,
        steps=steps,
        checked=trace_text.checked(trace),
    )


def _rows(model: TraceModel, pictures: Iterable[TracePicture], last: Iterable[TraceStep]) -> Iterator[_Row]:
    yield "models", model.file.path, [f"{model.name}, hash {model.sha256}", *trace_text.put(model.file)]
    for picture in pictures:
        for partition, dealt in trace_text.by_partition(picture):
            for features, origins in dealt:
                for origin in origins:
                    yield origin.file.repo, origin.name, trace_text.source(origin)
                    yield _stepped(origin.preprocess)
                yield _stepped(features)
            if partition is not None:
                yield _stepped(partition)
    yield from map(_stepped, last)


def _stepped(step: TraceStep) -> _Row:
    return step.pipeline, step.path, trace_text.computed(step)
