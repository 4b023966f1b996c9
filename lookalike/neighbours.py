"""The nearest pictures that a search found."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from lookalike.rows import Rows
from pipelines.errors import LookalikeError
from stages.datum import text_format
from stages.record.sources import Source
from stages.report import answer_table, markup

_SHORT = 12
"""Digits of a commit's id that are shown."""


@dataclass(frozen=True)
class Neighbour:
    """A picture of the library near to the pictures that were asked about.

    rank: from 1, the nearest. distance: the value of a float32, in the units of the metric. likeness: how alike it is,
    one of "same picture", "near copy", "very similar", "similar" and "weak"; None where the model has no scale.
    similarity: the probability of the same label in per cent, None without a calibration. sources: its files with
    their facts, at least one, first those inside the question's filter. same: whether it is one of the asked pictures.
    near: whether it is a near-duplicate of one. group: near-duplicates of each other have one number.
    """

    rank: int
    id: str
    distance: float
    likeness: str | None
    similarity: float | None
    sources: Sequence[Source]
    same: bool
    near: bool
    group: int
    _thumbnail: Callable[[str], bytes] = field(repr=False, compare=False)
    _numbers: Sequence[int] = field(repr=False, compare=False)

    @property
    def paths(self) -> Sequence[str]:
        """The true paths of its sources, in their order."""
        return tuple(source.path for source in self.sources)

    @property
    def path(self) -> str:
        """The first of its paths."""
        return self.sources[0].path

    def number(self, source: int) -> int:
        """The number that the service has for the source of one of its paths."""
        return self._numbers[source] if 0 <= source < len(self._numbers) else source  # which the service refuses

    @cached_property
    def thumbnail(self) -> bytes:
        """Its thumbnail, a JPEG file. Raises LookalikeError if it cannot be fetched."""
        return self._thumbnail(self.id)


class Neighbours(Rows[Neighbour]):
    """The answer to a search, the nearest first, with near-duplicates among them. `answer` is all that the service
    said, in JSON's types."""

    schema = pa.schema(
        [
            pa.field("rank", pa.int32(), nullable=False),
            pa.field("path", pa.string(), nullable=False),
            pa.field("distance", pa.float32(), nullable=False),
            ("likeness", pa.string()),
            ("similarity", pa.float32()),
            pa.field("same", pa.bool_(), nullable=False),
            pa.field("near", pa.bool_(), nullable=False),
            pa.field("group", pa.int32(), nullable=False),
            pa.field("id", pa.string(), nullable=False),
            pa.field("paths", pa.list_(pa.string()), nullable=False),
        ]
    )

    def __init__(self, answer: Mapping[str, Any], thumbnail: Callable[[str], bytes]) -> None:
        """thumbnail: gives the thumbnail of an id."""
        self.answer = answer
        super().__init__([_neighbour(each, thumbnail) for each in answer["neighbors"]])

    @property
    def commits(self) -> Mapping[str, str]:
        """The commits that answered: of index, library (images) and model."""
        return dict(self.answer["commits"])

    @property
    def model(self) -> str:
        """The model that compared, by name and size."""
        return str(self.answer["model"]["described"])

    @property
    def metric(self) -> str:
        """The metric of the distances."""
        return str(self.answer["metric"])

    @property
    def exact(self) -> bool:
        """Whether these are proven to be the nearest; otherwise `answer["recall"]` is the share that codes find."""
        return bool(self.answer["exact"])

    @property
    def groups(self) -> Sequence[Sequence[Neighbour]]:
        """The neighbours by group, the nearest of each first: k of them, if the library has so many."""
        found: dict[int, list[Neighbour]] = {}
        for each in self:
            found.setdefault(each.group, []).append(each)
        return list(found.values())

    def files(self) -> pa.Table:
        """A row for each file of the neighbours, with all that is known of it: what `lookalike query --parquet` and the
        page write. A byte of a path that is not UTF-8 is \\xff."""
        return answer_table.to_arrow(answer_table.rows(self.answer))

    def __repr__(self) -> str:
        lines = [
            f"{each.rank:>4}  {text_format.distance(each.distance):>9}  {each.likeness or '':<12}  {each.path}"
            for each in self
        ]
        return "\n".join([self._summary(), *lines])

    def _repr_html_(self) -> str:
        tiles = [(each[0], _picture(each[0]), len(each) - 1) for each in self.groups]
        return markup.fill("tiles.html", summary=self._summary(), tiles=tiles)

    def _summary(self) -> str:
        how = "" if self.exact else ", approximate"
        found = text_format.counted(len(self), "picture", "pictures")
        return f"{found}, {self.metric} distance{how}, {self.model}, commit {self.commits['index'][:_SHORT]}"


def _neighbour(each: Mapping[str, Any], thumbnail: Callable[[str], bytes]) -> Neighbour:
    names = ("rank", "id", "distance", "likeness", "similarity", "same", "near", "group")
    known = {name: each[name] for name in names}
    sources = tuple(Source(**{name: of[name] for name in Source._fields if name in of}) for of in each["sources"])
    numbers = tuple(of["number"] for of in each["sources"])
    return Neighbour(**known, sources=sources, _thumbnail=thumbnail, _numbers=numbers)


def _picture(neighbour: Neighbour) -> bytes:
    """Its thumbnail, or b"" if the service has ended or the picture is gone: the rest is shown."""
    with contextlib.suppress(LookalikeError):
        return neighbour.thumbnail
    return b""
