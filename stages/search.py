"""The search stage: the nearest pictures of one segment for every query of the entries of one bucket.

Runs as `python -m stages.search`, under Pachyderm or on plain directories. Knows neither models nor sheets.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.search"))

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from stages.datum.contract import Datum, DatumInput, StageError
from stages.datum.input_cache import MultiInputCache
from stages.datum.text_format import counted
from stages.files import query_entries, segment_files
from stages.files.path_globs import FilterError
from stages.files.query_entries import QueryEntry
from stages.files.segment_search import SegmentSearch
from stages.files.tables.columns import taken
from stages.files.tables.neighbour_table import NeighbourTable
from stages.files.thumbnail_files import LazyThumbnails
from stages.filters.attribute_table import AttributeSegment, AttributeTable
from stages.filters.joint_filter import admitted_files
from stages.knn.backend import Mask
from stages.knn.search_settings import SearchSettings, read_settings
from stages.knn.top_k import NONE, TopK
from stages.knn.vector_set import VectorSet
from stages.report.query_sample import most_pictured, sheet_queries

VERSION = 10
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

_TOGETHER = 4096
"""Most queries of several entries that are searched in one call: a block of an exact search without threads."""

_ROOM = 64 << 20
"""Bytes of entries that are kept for the next segments, of all buckets: the vectors of 13,000 queries."""

_SEGMENTS = 768 << 20
"""Bytes of segments that are kept for the next job: 100,000 pictures with vectors of 1,280 numbers. Nine tenths are
pages of files, which the system can take away."""


def start(environment: Mapping[str, str]) -> "SearchStage":
    """Reads K, METRIC, BACKEND and ALGORITHM; returns the function that searches one datum after the other."""
    return SearchStage(read_settings(environment), environment)


class SearchStage:
    """Searches one segment for the entries of one bucket at a time. Keeps the segment for the next buckets, the
    entries for the next segments, and as many segments as there is room for, for the next job: of a process that is
    kept, the next query searches the same library.

    The datum's inputs, lazy or not: `index`, the directory /<b>; `queries`, the directory /queries/<bucket>. Writes
    /<entry>/<b>.parquet (Neighbours) for each entry: for each query its K nearest in the segment, itself first, then by
    distance, then by id, with the thumbnails of those that the sheets show. Nothing for an entry without pictures. An
    entry whose question has a filter, of paths or by attributes, gets the nearest that it admits, found exactly.

    Entries are searched together, and still have the answers that each would have alone: an exact search gives each
    query its own. The candidates of an approximate one may depend on the number of queries, so it takes each by itself.
    """

    def __init__(self, chosen: SearchSettings, environment: Mapping[str, str]) -> None:
        self._settings = chosen
        self._together = _TOGETHER if chosen.algorithm == "exact" else 0
        self._segments = MultiInputCache(lambda index: SegmentSearch(index, chosen, environment), _size, _SEGMENTS)
        self._entries = MultiInputCache(lambda given: query_entries.read(given, chosen.metric), _size, _ROOM)
        self._thumbnails: tuple[SegmentSearch, LazyThumbnails] | None = None
        self._attributes: tuple[SegmentSearch, AttributeTable] | None = None
        self._group: Sequence[QueryEntry] = ()
        self._points: VectorSet | None = None

    def __call__(self, datum: Datum) -> None:
        """Raises StageError, which names the entry, if one is damaged or was computed with another model."""
        asked = map(self._entries.get, query_entries.list_entries(datum.inputs["queries"]))
        pictured = (each for each in asked if each is not None)
        index, searched, queries = datum.inputs["index"], 0, 0
        for group in query_entries.groups(pictured, self._together):
            segment = self._segments.get(index)
            self._search(segment, index, group, datum.out)
            searched, queries = searched + len(group), queries + sum(map(len, group))
        if not searched:
            print("search: no entry of this bucket has pictures to search for")
            return
        said = f"{counted(queries, 'query', 'queries')} of {counted(searched, 'entry', 'entries')}"
        print(f"search: {said} in {len(segment.images)} of {segment.name}")

    def _search(self, segment: SegmentSearch, index: DatumInput, group: Sequence[QueryEntry], out: Path) -> None:
        """Writes the answers to some entries."""
        thumbnails = self._thumbnails_of(segment, index)
        for each in group:
            _check_models(segment, each)
        found = self._find(segment, index, group)
        first = 0
        for each in group:
            rows = slice(first, first + len(each))
            own = TopK(found.distances[rows], found.rows[rows])
            target = out / each.name / f"{segment.name}.parquet"
            target.parent.mkdir(parents=True, exist_ok=True)
            _table(segment, thumbnails, each, own, self._settings).write(target)
            first = rows.stop

    def _find(self, segment: SegmentSearch, index: DatumInput, group: Sequence[QueryEntry]) -> TopK:
        """The k nearest of each query. A query that is in the library is its own first neighbour, at distance 0."""
        points = self._points_of(group)
        itself = np.array([segment.rows.get(id, NONE) for each in group for id in each.ids], dtype=np.int64)
        within = None
        if group[0].filter or group[0].where:
            within = _admitted(segment.name, self._attributes_of(segment, index), group[0])
        return segment.nearest(index, points, itself, within)

    def _thumbnails_of(self, segment: SegmentSearch, index: DatumInput) -> LazyThumbnails:
        """The thumbnails of a segment; those that were read are kept for the next bucket, and not for the next job."""
        if self._thumbnails is None or self._thumbnails[0] is not segment:
            self._thumbnails = segment, segment_files.thumbnails(index, segment.images)
        return self._thumbnails[1]

    def _attributes_of(self, segment: SegmentSearch, index: DatumInput) -> AttributeTable:
        """The attributes of a segment, kept as its thumbnails are."""
        if self._attributes is None or self._attributes[0] is not segment:
            known = AttributeSegment(segment.images, segment_files.read_annotations(index))
            self._attributes = segment, AttributeTable([known])
        return self._attributes[1]

    def _points_of(self, group: Sequence[QueryEntry]) -> VectorSet:
        """The vectors of some entries, kept for the next segment."""
        if self._points is None or self._group != group:
            self._points = None  # frees the memory first
            joined = group[0].vectors if len(group) == 1 else np.concatenate([each.vectors for each in group])
            self._group, self._points = group, VectorSet(joined, self._settings.metric)
        return self._points


def _size(held: QueryEntry | SegmentSearch | None) -> int:
    return 0 if held is None else held.size


def _admitted(segment: str, table: AttributeTable, entry: QueryEntry) -> Mask:
    """The pictures with a file that both filters of an entry admit, bool (n,). What people say may have changed since
    the entry was put: a filter that does not fit it admits nothing, and the log says why."""
    try:
        files, unknown = admitted_files(table, entry.filter, entry.where, lenient=True)
    except FilterError as error:
        if not entry.where:
            raise
        print(f"search: entry {entry.name} finds nothing in {segment}: {error}")
        return np.zeros(table.pictures, np.bool_)
    if unknown:
        print(f"search: no picture of {segment} has {' or '.join(unknown)}")
    return table.pictures_of(files)


def _check_models(segment: SegmentSearch, entry: QueryEntry) -> None:
    mismatch = segment.images.origin.mismatch(entry.origin, f"segment {segment.name}", f"the entry {entry.name}")
    if mismatch:
        raise StageError(
            f"{mismatch} Set the same IMAGE_SIZE and FIT in the specs of preprocess and preprocess-queries and run: "
            "lookalike deploy. If they are the same, wait for both features pipelines, or reprocess the older one: "
            "lookalike deploy --reprocess features"
        )


def _table(
    segment: SegmentSearch, thumbnails: LazyThumbnails, entry: QueryEntry, found: TopK, chosen: SearchSettings
) -> NeighbourTable:
    query, rank = np.nonzero(found.rows != NONE)
    rows = found.rows[query, rank].tolist()
    ids = [entry.ids[each] for each in query.tolist()]
    drawn = set(sheet_queries(entry.name, entry.ids, most_pictured(chosen.k)))
    return NeighbourTable(
        queries=ids,
        ranks=rank.astype(np.int32),
        ids=list(taken(segment.images.ids, rows)),
        distances=found.distances[query, rank],
        sources=taken(segment.images.sources, rows),
        thumbnails=[thumbnails[row] if id in drawn else None for id, row in zip(ids, rows, strict=True)],
        origin=entry.origin,
        metric=chosen.metric,
        k=chosen.k,
    )
