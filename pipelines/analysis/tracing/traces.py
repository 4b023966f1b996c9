"""A trace as a value: everything that led to one tile of a result sheet, or to one picture of the index. Knows neither
servers nor drawing."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that somebody put: the commit that put this content (its id, "" if it cannot be found; its start in UTC,
    that of the original if it was imported; its author and description, "" if unknown). member: the picture in a block
    or an archive, "" for a file of its own. note: the reason for a gap, "" without one."""

    repo: str
    path: str
    member: str = ""
    commit: str = ""
    started: datetime | None = None
    author: str = ""
    description: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A file that a pipeline computed: the commit it was read at, the datum that wrote it, and the job that processed
    that datum, which is an older one where later jobs skipped it.

    seconds: downloading, processing and uploading, as far as recorded. stage: LOOKALIKE_STAGE, the version of the code.
    unchanged: whether the inputs are still those that were processed; None if that is not known. note: see File.
    """

    pipeline: str
    path: str
    commit: str = ""
    datum: str = ""
    job: str = ""
    state: str = ""
    finished: datetime | None = None
    download: float | None = None
    process: float | None = None
    upload: float | None = None
    version: int | None = None
    stage: str = ""
    image: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    unchanged: bool | None = None
    note: str = ""

    @property
    def skipped_since(self) -> bool:
        """Whether the pipeline's job of that commit skipped the datum."""
        return bool(self.job) and self.job != self.commit

    @property
    def seconds(self) -> float | None:
        """All of its time, in seconds; None if nothing was recorded."""
        known = [each for each in (self.download, self.process, self.upload) if each is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class TraceModel:
    """The backbone: its name and size, its hash, which is its identity, and its file."""

    name: str
    sha256: str
    file: SourceFile


@dataclass(frozen=True, slots=True)
class PictureOrigin:
    """One source of a picture: its true name, the facts of its file (see stages.record.sources.Source; "", 0 and None
    where unknown), the file, and the steps that turned it into a vector. partition: the step that dealt the vector to a
    segment of the index; None for a query."""

    name: str
    file: SourceFile
    preprocess: TraceStep
    features: TraceStep
    partition: TraceStep | None = None
    sha256: str = ""
    width: int = 0
    height: int = 0
    bytes: int = 0
    taken: str = ""
    camera: str = ""
    lens: str = ""
    latitude: float | None = None
    longitude: float | None = None
    format: str = ""

    @property
    def steps(self) -> list[TraceStep]:
        """These steps, in the order of the work."""
        return [self.preprocess, self.features, *([] if self.partition is None else [self.partition])]


@dataclass(frozen=True, slots=True)
class TracePicture:
    """A picture: its id, all its names, and a small JPEG file, b"" without one."""

    id: str
    names: tuple[str, ...]
    origins: tuple[PictureOrigin, ...]
    thumbnail: bytes = b""


@dataclass(frozen=True, slots=True)
class TraceCheck:
    """A statement about the path that was compared on the way, and whether it is true."""

    statement: str
    holds: bool


class PicturePath(ABC):
    """The way of pictures from their files to an answer, or to the index: what traces have in common."""

    __slots__ = ()
    model: TraceModel

    @property
    @abstractmethod
    def pictures(self) -> tuple[TracePicture, ...]:
        """Those that it is about."""

    @property
    @abstractmethod
    def last(self) -> tuple[TraceStep, ...]:
        """The steps after those of single pictures, in the order of the work."""

    @property
    def steps(self) -> list[TraceStep]:
        """Every step once, in the order of the work."""
        before = (step for picture in self.pictures for origin in picture.origins for step in origin.steps)
        return list({(step.pipeline, step.path): step for step in (*before, *self.last)}.values())

    @property
    def gaps(self) -> list[str]:
        """The links that could not be followed, as sentences."""
        return list(dict.fromkeys(_gaps(self)))

    @property
    def seconds(self) -> float:
        """The time of all its steps, as far as recorded."""
        return sum(step.seconds or 0.0 for step in self.steps)


@dataclass(frozen=True, slots=True)
class AnswerTrace(PicturePath):
    """The path of one answer, at the commit set `commit`, which began at `began` (UTC)."""

    entry: str
    rank: int
    k: int
    metric: str
    distance: float
    commit: str
    began: datetime | None
    query: TracePicture
    neighbour: TracePicture
    index: TraceStep
    search: TraceStep
    render: TraceStep
    model: TraceModel
    checks: tuple[TraceCheck, ...] = ()

    @property
    def pictures(self) -> tuple[TracePicture, ...]:
        return self.query, self.neighbour

    @property
    def last(self) -> tuple[TraceStep, ...]:
        return self.index, self.search, self.render


@dataclass(frozen=True, slots=True)
class PictureTrace(PicturePath):
    """The way of one picture of the index, at the commit set `commit`, whose commit of the index began at `began`
    (UTC)."""

    commit: str
    began: datetime | None
    picture: TracePicture
    index: TraceStep
    model: TraceModel
    checks: tuple[TraceCheck, ...] = ()

    @property
    def pictures(self) -> tuple[TracePicture, ...]:
        return (self.picture,)

    @property
    def last(self) -> tuple[TraceStep, ...]:
        return (self.index,)


def as_data(trace: AnswerTrace | PictureTrace) -> dict[str, Any]:
    """The trace as values of JSON, see docs/explaining.md. Without the thumbnails; times as in RFC 3339."""
    data: dict[str, Any] = _plain(asdict(trace))
    for name in ("query", "neighbour", "picture"):
        data.get(name, {}).pop("thumbnail", None)
    return {**data, "gaps": trace.gaps, "seconds": trace.seconds}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _gaps(path: PicturePath) -> Iterator[str]:
    for step in path.steps:
        if step.note:
            yield f"{step.pipeline}: {step.note}"
    for picture in path.pictures:
        for origin in picture.origins:
            if origin.file.note:
                yield f"{origin.name}: {origin.file.note}"
        if len(picture.names) > len(picture.origins):
            yield f"only {len(picture.origins)} of {len(picture.names)} sources were followed"
    if path.model.file.note:
        yield f"models: {path.model.file.note}"
