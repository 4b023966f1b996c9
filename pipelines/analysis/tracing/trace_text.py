"""A trace in words, the same on the terminal and on the page: titles, and one short line for each fact."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from pipelines.analysis.tracing.traces import (
    AnswerTrace,
    PictureOrigin,
    PicturePath,
    PictureTrace,
    SourceFile,
    TracePicture,
    TraceStep,
)
from stages.datum.text_format import counted, distance, place

_SHORT = 12
"""Digits of ids: enough for --at, `lookalike jobs` and `lookalike logs --datum`."""


def short(id_: str) -> str:
    """The start of an id, as the commands take it."""
    return id_[:_SHORT]


def title(trace: PicturePath) -> str:
    """The names of the pictures."""
    return " → ".join(map(name, trace.pictures))


def answer(trace: AnswerTrace) -> str:
    """The neighbour's place among the answers."""
    same = ", the same picture" if trace.query.id == trace.neighbour.id else ""
    return f"rank {trace.rank} of {trace.k}, {trace.metric} distance {distance(trace.distance)}{same}"


def by_partition(picture: TracePicture) -> list[tuple[TraceStep | None, list[tuple[TraceStep, list[PictureOrigin]]]]]:
    """The sources of a picture by the step that dealt their vector to a segment, None without one, and those of each by
    the step that computed it: those in one part have it in common."""
    steps = {_path(origin.partition): origin.partition for origin in picture.origins}
    groups = ([each for each in picture.origins if _path(each.partition) == path] for path in steps)
    return list(zip(steps.values(), map(_by_features, groups), strict=True))


def _by_features(origins: Sequence[PictureOrigin]) -> list[tuple[TraceStep, list[PictureOrigin]]]:
    steps = {origin.features.path: origin.features for origin in origins}
    return [(step, [each for each in origins if each.features.path == path]) for path, step in steps.items()]


def _path(step: TraceStep | None) -> str:
    return "" if step is None else step.path


def name(picture: TracePicture) -> str:
    """The first name of a picture."""
    return next(iter(picture.names), short(picture.id))


def moment(time: datetime | None) -> str:
    """A time for people, in this machine's zone."""
    return f"{time.astimezone():%Y-%m-%d %H:%M:%S}" if time else ""


def seconds(value: float | None) -> str:
    """A duration for people."""
    if value is None:
        return ""
    return f"{value:,.1f} s" if value >= 1 else f"{value * 1000:.0f} ms"


def computed(step: TraceStep) -> Iterator[str]:
    """The datum of a step, its job, its time and its code, a line each."""
    if step.datum:
        job = f", job {short(step.job)}" if step.job else ""
        ended = f", {moment(step.finished)}" if step.finished else ""
        state = f", {step.state}" if step.state not in ("", "processed") else ""
        yield f"datum {short(step.datum)}{job}{ended}{state}"
    if step.skipped_since:
        yield f"skipped by later jobs, such as {short(step.commit)}"
    if step.seconds is not None:
        parts = zip(("download", "work", "upload"), (step.download, step.process, step.upload), strict=True)
        told = ", ".join(f"{word} {seconds(value)}" for word, value in parts if value is not None)
        yield f"{seconds(step.seconds)}: {told}"
    if step.version is not None:
        values = " ".join(f"{key}={value}" for key, value in step.environment.items())
        code = f"{step.stage or 'code without LOOKALIKE_STAGE'}, pipeline version {step.version}, {step.image}"
        yield f"{code}, {values}" if values else code
    if step.unchanged is False:
        yield "computed from other inputs than this commit's"
    if step.note:
        yield step.note


def put(file: SourceFile) -> Iterator[str]:
    """The commit that put a file, and its author."""
    if file.commit and file.started:
        yield f"put {moment(file.started)}{f' by {file.author}' if file.author else ''}, commit {short(file.commit)}"
    elif file.commit:
        yield f"commit {short(file.commit)}"
    if file.description:
        yield f"“{file.description}”"
    if file.note:
        yield file.note


def source(origin: PictureOrigin) -> Iterator[str]:
    """The place of a source, if its name does not tell it, its facts, and the commit that put it."""
    file = origin.file
    inside = f", in it {file.member}" if file.member not in ("", origin.name) else ""
    if file.path.strip("/") != origin.name:
        yield f"file {file.path}{inside}" if file.path else "its file is not known"
    known = facts(origin)
    if known:
        yield known
    yield from put(file)


def facts(origin: PictureOrigin) -> str:
    """The format and the sizes of a file and its picture, and when, with what and where it was taken."""
    told = [origin.format] if origin.format else []
    told += [f"{origin.width:,} × {origin.height:,} pixels"] if origin.width else []
    told += [counted(origin.bytes, "byte", "bytes")] if origin.bytes else []
    told += [f"taken {origin.taken.replace('T', ' ')}"] if origin.taken else []
    told += [" with ".join(filter(None, (origin.camera, origin.lens)))] if origin.camera or origin.lens else []
    if origin.latitude is not None and origin.longitude is not None:
        told.append(place(origin.latitude, origin.longitude))
    return ", ".join(told)


def checked(trace: AnswerTrace | PictureTrace) -> str:
    """The number of checks, and whether all of them hold."""
    failed = [each for each in trace.checks if not each.holds]
    if failed:
        return f"{len(failed)} of {counted(len(trace.checks), 'check', 'checks')} failed"
    return f"{counted(len(trace.checks), 'check', 'checks')}, all true"


def shortened(text: str, most: int) -> str:
    """A text without its middle, if it is longer than that: both ends of a path tell more than its start."""
    if len(text) <= most:
        return text
    return f"{text[: (most - 1) // 2]}…{text[len(text) - most // 2 :]}"
