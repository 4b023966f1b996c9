"""The quality of the library's pictures, from the tables and vectors of its index: no picture is decoded again.

Knows no terminal.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import result_sheets
from pipelines.transfer import vector_export
from pipelines.transfer.vector_export import VectorExport
from stages.files import thumbnail_files
from stages.files.tables.index_table import IndexTable
from stages.files.thumbnail_files import ThumbnailPlace
from stages.knn.search_settings import SearchSettings
from stages.knn.searcher_factory import open_searcher
from stages.knn.top_k import NONE, Searcher
from stages.knn.vector_set import VectorSet
from stages.quality.picture_flaws import FAR, OUTLIER, PictureFlaw, PictureMeasures, find_flaws
from stages.report.page_links import FIRST
from stages.report.quality_page import LINES, MOST_TILES, page

_MOST = 200_000
"""Pictures whose distances are computed here: 1 GB of vectors."""

_SAMPLE = 1000
"""Pictures whose nearest are known in any case: the usual distance is their median."""

_Floats = NDArray[np.float64]

TOO_MANY = f"not judged: the vectors of more than {_MOST:,} pictures are not compared on this machine"


@dataclass(frozen=True, slots=True)
class QualityReport:
    """The lists of a library's pictures that stand out. commit: of the index. pictures: of the library."""

    commit: str
    pictures: int
    lists: Sequence[PictureFlaw]


def report(connection: Connection, to: Path) -> QualityReport:
    """Writes the page and quality.jsonl into a directory, over those of an earlier run.

    Raises LookalikeError if there is no index yet or another version made it, or if the directory is that of a result
    sheet."""
    if (to / result_sheets.ANSWERS).exists():
        raise LookalikeError(f"{to} is the result sheet of a query: name another directory with --output")
    read = vector_export.plan(connection)
    usual, nearest = connection.retry(lambda: _nearest(read))
    lists = list(_lists(read.segments, usual, nearest, read.index))
    found = QualityReport(read.index.at, read.facts.count, lists)
    to.mkdir(parents=True, exist_ok=True)
    (to / FIRST).write_text(page(found.lists, found.pictures, found.commit[:12]), encoding="utf-8")
    (to / LINES).write_text("".join(map(_line, _listed(found.lists))), encoding="ascii")
    return found


def _nearest(read: VectorExport) -> tuple[float, NDArray[np.float64] | None]:
    """The usual distance to the nearest other picture, and of each picture of the index its distance, as
    `nearest_distances` gives them; None in a library that is too large."""
    if read.facts.count > _MOST:
        return 0.0, None
    metric = read.facts.metric
    points = [VectorSet(vectors, metric, read.segments[name].ids) for name, vectors in read.whole()]
    return nearest_distances(points, FAR, lambda each: open_searcher(each, SearchSettings(1, metric), {}))


def _lists(
    segments: Mapping[str, IndexTable], usual: float, nearest: NDArray[np.float64] | None, index: Repository
) -> Iterator[PictureFlaw]:
    tables = segments.values()
    places = [(segment, row) for segment, images in segments.items() for row in range(len(images))]
    sizes = [[(each.width, each.height) for each in sources] for images in tables for sources in images.sources]
    largest = [max(each, key=lambda size: size[0] * size[1]) for each in sizes]
    widths, heights = np.array(largest, np.int64).reshape(-1, 2).T
    traits = {
        name: np.concatenate([np.empty(0), *(getattr(images, name) for images in tables)])
        for name in ("brightness", "contrast", "sharpness")
    }
    side = max((images.origin.image_size for images in tables), default=0)
    measures = PictureMeasures(**traits, widths=widths, heights=heights, nearest=nearest, usual=usual, side=side)
    for flaw in find_flaws(measures):
        pictures = []
        for number, each in enumerate(flaw.pictures):
            segment, at = places[each.row]
            images = segments[segment]
            shown = _thumbnail(index, segment, images.thumbnails[at]) if number < MOST_TILES else None
            pictures.append(each._replace(id=images.ids[at], sources=images.sources[at], thumbnail=shown))
        note = TOO_MANY if flaw.name == OUTLIER and nearest is None else flaw.note
        yield flaw._replace(pictures=pictures, note=note)


def _thumbnail(index: Repository, segment: str, place: ThumbnailPlace) -> bytes | None:
    """A JPEG file; None for a picture without one."""
    path = f"/{segment}/{thumbnail_files.DIRECTORY}/{place.part}{thumbnail_files.SUFFIX}"
    return index.read(path, place.begin, place.size) if place.size else None


def _listed(lists: Sequence[PictureFlaw]) -> Iterator[dict[str, object]]:
    for each in lists:
        for picture in each.pictures:
            facts = [source._asdict() for source in picture.sources]
            yield {"flaw": each.name, "id": picture.id, "said": picture.said, "sources": facts}


def _line(value: Mapping[str, object]) -> str:
    return json.dumps(value, sort_keys=True) + "\n"


def nearest_distances(
    segments: Sequence[VectorSet], times: float, opened: Callable[[VectorSet], Searcher]
) -> tuple[float, _Floats]:
    """The usual distance to the nearest other picture, 0 if there is none, and of each of n pictures, segment by
    segment, the distance to the nearest other one if that is more than so many times the usual one, else to one that is
    not farther; float64 (n,), NaN in a library of one picture. opened: makes an exact searcher. Most pictures have one
    within the limit in the first segment that is looked at, and no other segment needs to be."""
    count = sum(map(len, segments))
    sample = np.arange(0, count, max(1, -(-count // _SAMPLE)))
    known = _searched(segments, sample, 0.0, opened)[sample]
    positive = known[np.isfinite(known) & (known > 0)]
    usual = float(np.median(positive)) if len(positive) else 0.0
    found = _searched(segments, np.arange(count), times * usual, opened)
    return usual, np.where(np.isfinite(found), found, np.nan)


def _searched(
    segments: Sequence[VectorSet], rows: NDArray[np.int64], enough: float, opened: Callable[[VectorSet], Searcher]
) -> _Floats:
    """The distance to the nearest other picture of these rows, to the first one within `enough`, of all n pictures;
    infinite for other rows."""
    starts = np.cumsum([0, *map(len, segments)])
    least = np.full(starts[-1], np.inf)
    open_ = rows
    for there, first in zip(segments, starts.tolist(), strict=False):
        searcher = opened(there)
        for here, start in zip(segments, starts.tolist(), strict=False):
            mine = open_[(open_ >= start) & (open_ < start + len(here))]
            if len(mine):
                itself = np.where((mine >= first) & (mine < first + len(there)), mine - first, NONE)
                near = searcher.search(here.part(mine - start), 1, itself).distances
                least[mine] = np.minimum(least[mine], near[:, 0] if near.shape[1] else np.inf)
        open_ = open_[least[open_] > enough]
    return least
