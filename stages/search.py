"""The search stage: the nearest pictures of one segment for every query of one entry.

Runs as `python -m stages.search`, under Pachyderm or on plain directories. Knows neither models nor sheets.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.contract
    from stages import contract

    raise SystemExit(contract.run("stages.search"))

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stages import segments
from stages.contract import Datum, Input, StageError, spool
from stages.inputcache import InputCache
from stages.knn.codes import Codes
from stages.knn.factory import open_searcher
from stages.knn.settings import Settings, settings
from stages.knn.topk import NONE, Searcher, TopK, itself_first
from stages.knn.vectorset import VectorSet
from stages.sheetqueries import most_pictured, sheet_queries
from stages.tables.images import Images, read_images
from stages.tables.indexed import Indexed
from stages.tables.neighbours import Neighbours, write_neighbours
from stages.thumbnailfiles import Thumbnails
from stages.vectors import read_vectors


@dataclass(frozen=True)
class Segment:
    """An open segment of the index: its name, its pictures and a searcher of their vectors."""

    name: str
    images: Indexed
    thumbnails: Thumbnails
    rows: Mapping[str, int]  # of each id
    searcher: Searcher


@dataclass(frozen=True)
class Queries:
    """The pictures of one entry and their vectors, in the same order."""

    entry: str
    images: Images
    points: VectorSet


def start(environment: Mapping[str, str]) -> "Search":
    """Reads K, METRIC, BACKEND and ALGORITHM; returns the function that searches one datum after the other."""
    return Search(settings(environment), environment)


class Search:
    """Searches one segment for one entry at a time. Keeps the segment for the next entries, and the entry for the next
    segments.

    The datum's inputs, lazy or not: `index`, the directory /<b>; `queries`, the directory /queries/<entry>. Writes
    /<entry>/<b>.parquet (Neighbours): for each query its K nearest in the segment, itself first, then by
    distance, then by id, with the thumbnails of those that the sheets show. Nothing for an entry without pictures.
    """

    def __init__(self, chosen: Settings, environment: Mapping[str, str]) -> None:
        self._settings = chosen
        self._segments = InputCache(lambda index: _read_segment(index, chosen, environment))
        self._queries = InputCache(lambda queries: _read_queries(queries, chosen))

    def __call__(self, datum: Datum) -> None:
        queries = self._queries.get(datum.inputs["queries"])
        if queries is None:
            print("search: this entry has no pictures to search for")
            return
        segment = self._segments.get(datum.inputs["index"])
        _check_models(segment, queries)
        found = self._find(segment, queries)
        target = datum.out / queries.entry / f"{segment.name}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        write_neighbours(_table(segment, queries, found, self._settings), target)
        print(f"search: {len(queries.images)} queries of {queries.entry} in {len(segment.images)} of {segment.name}")

    def _find(self, segment: Segment, queries: Queries) -> TopK:
        """The k nearest of each query. A query that is in the library is its own first neighbour, at distance 0."""
        k = self._settings.k
        itself = np.array([segment.rows.get(query, NONE) for query in queries.images.ids], dtype=np.int64)
        found = segment.searcher.search(queries.points, k, exclude=itself)
        return itself_first(found, itself, min(k, len(segment.images)))


def _read_segment(index: Input, chosen: Settings, environment: Mapping[str, str]) -> Segment:
    images = segments.read_table(index)
    vectors = segments.read_points(index, len(images), images.dimension)
    library = VectorSet(vectors, chosen.metric, images.ids)
    searcher = open_searcher(library, chosen, environment, codes=_codes(index, chosen))
    rows = {id: row for row, id in enumerate(images.ids)}
    return Segment(segments.name_of(index), images, segments.thumbnails(index, images), rows, searcher)


def _codes(index: Input, chosen: Settings) -> Codes | None:
    """The segment's codes, if the search asks for these."""
    if chosen.algorithm == "exact":
        return None
    facts = segments.read_facts(index)
    held = facts.codes and (facts.codes.algorithm, facts.codes.metric)
    return segments.read_codes(index, facts) if held == (chosen.algorithm, chosen.metric) else None


def _read_queries(queries: Input, chosen: Settings) -> Queries | None:
    """The entry's pictures; None if it has none."""
    table = queries.path / "images.parquet"
    if not table.exists():
        return None
    with tempfile.TemporaryDirectory(prefix="lookalike-") as directory:
        into = Path(directory)
        images = read_images(spool(table, into))
        if not len(images):
            return None
        vectors = read_vectors(spool(queries.path / "vectors.npy", into), images.dimension)
    if len(vectors) != len(images):
        raise StageError(
            f"entry {queries.repo_path} has {len(vectors)} vectors for {len(images)} pictures; "
            "reprocess the features-queries pipeline: lookalike deploy --reprocess features-queries"
        )
    return Queries(Path(queries.repo_path).name, images, VectorSet(vectors, chosen.metric, images.ids))


def _check_models(segment: Segment, queries: Queries) -> None:
    ours, theirs = segment.images, queries.images
    if ours.origin != theirs.origin:
        raise StageError(
            f"segment {segment.name} was computed with the model {ours.described}, the entry {queries.entry} with "
            f"{theirs.described}: their distances would be meaningless. Set the same IMAGE_SIZE and FIT in the specs "
            "of preprocess and preprocess-queries and run: lookalike deploy. If they are the same, wait for both "
            "features pipelines, or reprocess the older one: lookalike deploy --reprocess features"
        )


def _table(segment: Segment, queries: Queries, found: TopK, chosen: Settings) -> Neighbours:
    query, rank = np.nonzero(found.rows != NONE)
    rows = found.rows[query, rank].tolist()
    ids = [queries.images.ids[each] for each in query.tolist()]
    drawn = set(sheet_queries(queries.entry, queries.images.ids, most_pictured(chosen.k)))
    return Neighbours(
        queries=ids,
        ranks=rank.astype(np.int32),
        ids=[segment.images.ids[row] for row in rows],
        distances=found.distances[query, rank],
        sources=[segment.images.sources[row] for row in rows],
        thumbnails=[segment.thumbnails[row] if id in drawn else None for id, row in zip(ids, rows, strict=True)],
        model=queries.images.model,
        fit=queries.images.fit,
        metric=chosen.metric,
        k=chosen.k,
        backbone=queries.images.backbone,
    )
