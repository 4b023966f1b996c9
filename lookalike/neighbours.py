"""The nearest pictures that a search found."""

import base64
import contextlib
import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from lookalike.rows import Rows
from pipelines.errors import LookalikeError
from stages.datum import text_format

_SHORT = 12
"""Digits of a commit's id that are shown."""


@dataclass(frozen=True)
class Neighbour:
    """A picture of the library near to the pictures that were asked about.

    rank: from 1, the nearest. distance: the value of a float32, in the units of the metric. similarity: the probability
    of the same label in per cent, None without a calibration. paths: the true paths of its sources, at least one. same:
    whether it is one of the asked pictures. near: whether it is a near-duplicate of one. group: near-duplicates of each
    other have one number.
    """

    rank: int
    id: str
    distance: float
    similarity: float | None
    paths: Sequence[str]
    same: bool
    near: bool
    group: int
    _thumbnail: Callable[[str], bytes] = field(repr=False, compare=False)

    @property
    def path(self) -> str:
        """The first of its paths."""
        return self.paths[0]

    @cached_property
    def thumbnail(self) -> bytes:
        """Its thumbnail, a JPEG file. Raises LookalikeError if it cannot be fetched."""
        return self._thumbnail(self.id)


class Neighbours(Rows[Neighbour]):
    """The answer to a search, the nearest first. `answer` is all that the service said, in JSON's types."""

    schema = pa.schema(
        [
            pa.field("rank", pa.int32(), nullable=False),
            pa.field("path", pa.string(), nullable=False),
            pa.field("distance", pa.float32(), nullable=False),
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
        super().__init__([_neighbour(each, thumbnail) for each in answer["neighbours"]])

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

    def record(self, row: Neighbour) -> dict[str, Any]:
        """See Rows. Paths that are not UTF-8 have a replacement for each byte that Arrow cannot hold."""
        paths = [path.encode("utf-8", "replace").decode() for path in row.paths]
        values = {name: getattr(row, name) for name in self.schema.names}
        return values | {"path": paths[0], "paths": paths}

    def __repr__(self) -> str:
        lines = [f"{each.rank:>4}  {text_format.distance(each.distance):>9}  {each.path}" for each in self]
        return "\n".join([self._summary(), *lines])

    def _repr_html_(self) -> str:
        tiles = "".join(map(_tile, self))
        return f'{_STYLE}<div class="lookalike"><p>{html.escape(self._summary())}</p><ol>{tiles}</ol></div>'

    def _summary(self) -> str:
        how = "" if self.exact else ", approximate"
        found = text_format.counted(len(self), "picture", "pictures")
        return f"{found}, {self.metric} distance{how}, {self.model}, commit {self.commits['index'][:_SHORT]}"


def _neighbour(each: Mapping[str, Any], thumbnail: Callable[[str], bytes]) -> Neighbour:
    return Neighbour(
        rank=each["rank"],
        id=each["id"],
        distance=each["distance"],
        similarity=each["similarity"],
        paths=tuple(source["path"] for source in each["sources"]),
        same=each["same"],
        near=each["near"],
        group=each["group"],
        _thumbnail=thumbnail,
    )


def _tile(neighbour: Neighbour) -> str:
    image = b""
    with contextlib.suppress(LookalikeError):  # a service that has ended, or a picture that is gone: the rest is shown
        image = neighbour.thumbnail
    shown = f'<img alt="" src="data:image/jpeg;base64,{base64.b64encode(image).decode("ascii")}">' if image else ""
    badge = "same picture" if neighbour.same else "near-duplicate" if neighbour.near else ""
    similar = "" if neighbour.similarity is None else f" · {neighbour.similarity:.1f} %"
    more = f" +{len(neighbour.paths) - 1}" if len(neighbour.paths) > 1 else ""
    name = text_format.visible(neighbour.path.rpartition("/")[2] or neighbour.path)
    return (
        f'<li title="{html.escape(text_format.visible(neighbour.path))}">'
        f"<div>{shown}{badge and f'<em>{badge}</em>'}</div>"
        f"<b>{html.escape(text_format.distance(neighbour.distance))}</b>{similar}<br>"
        f"<bdi>{html.escape(name)}</bdi>{more}</li>"
    )


_STYLE = """<style>
.lookalike { font: 13px/1.45 system-ui, sans-serif; }
.lookalike p { margin: 0 0 8px; opacity: .75; }
.lookalike ol { display: flex; flex-wrap: wrap; gap: 14px; margin: 0; padding: 0; list-style: none; }
.lookalike li { width: 132px; margin: 0; overflow-wrap: anywhere; }
.lookalike div { position: relative; height: 132px; margin: 0 0 4px; border-radius: 8px;
  background: rgba(128, 128, 128, .14); }
.lookalike div img { width: 100%; height: 100%; object-fit: contain; margin: 0; border-radius: 8px; }
.lookalike em { position: absolute; left: 6px; bottom: 6px; padding: 1px 7px; border-radius: 9px;
  font-style: normal; font-size: 11px; color: #fff; background: rgba(20, 60, 140, .88); }
.lookalike > p { height: auto; }
</style>"""
