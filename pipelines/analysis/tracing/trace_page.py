"""The page of a trace, one self-contained HTML file: the path as a picture, and a table with everything in it. Knows no
server."""

from collections.abc import Iterable, Iterator

from pipelines.analysis.tracing import trace_svg, trace_text
from pipelines.analysis.tracing.traces import AnswerTrace, PictureTrace, TraceStep
from stages.report import markup

_Row = tuple[str, str, Iterable[str]]
"""A step, a file, and facts."""


def page(trace: AnswerTrace | PictureTrace) -> str:
    """The page of an answer, or of a picture of the index, as text for a UTF-8 file."""
    return markup.fill(
        "trace.html",
        trace=trace,
        heading=trace_text.title(trace),
        summary=trace_text.answer(trace)
        if isinstance(trace, AnswerTrace)
        else "the path of this picture into the index",
        moment=trace_text.moment(trace.began),
        drawing=trace_svg.drawing(trace) if isinstance(trace, AnswerTrace) else None,
        thumbnail=trace.picture.thumbnail if isinstance(trace, PictureTrace) else b"",
        steps=_rows(trace),
        checked=trace_text.checked(trace),
    )


def _rows(trace: AnswerTrace | PictureTrace) -> Iterator[_Row]:
    model = trace.model
    yield "models", model.file.path, [f"{model.name}, hash {model.sha256}", *trace_text.put(model.file)]
    for picture in trace.pictures:
        for partition, dealt in trace_text.by_partition(picture):
            for features, origins in dealt:
                for origin in origins:
                    yield origin.file.repo, origin.name, trace_text.source(origin)
                    yield _stepped(origin.preprocess)
                yield _stepped(features)
            if partition is not None:
                yield _stepped(partition)
    yield from map(_stepped, trace.last)


def _stepped(step: TraceStep) -> _Row:
    return step.pipeline, step.path, trace_text.computed(step)
