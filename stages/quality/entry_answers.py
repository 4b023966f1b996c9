"""The answers to one entry's queries: the results of all segments merged into the K nearest distinct pictures.

Owns the merge and the lines of neighbors.jsonl. Knows the tables' values, but no files, no drawing and no Pachyderm.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stages.datum.contract import StageError
from stages.files import path_masks
from stages.files.packs import Rejection
from stages.files.query_texts import QueryText
from stages.files.tables.image_table import ImageTable
from stages.files.tables.neighbour_table import NeighbourTable
from stages.files.tables.table import RowFilter
from stages.quality import distance_limits, distance_scale
from stages.quality.distance_limits import WEAK
from stages.quality.distance_scale import DistanceScale
from stages.record.origin import Origin
from stages.record.sources import Source, paths, unite

SegmentReader = Callable[[RowFilter], NeighbourTable]
"""Reads the wanted rows of one segment's table."""


@dataclass(frozen=True)
class QueryMatch:
    """A distinct library picture near a query."""

    id: str
    distance: float  # the value of a float32
    sources: tuple[Source, ...]  # all its sources, sorted by path, first those that the filter admits
    thumbnail: bytes | None  # JPEG; None if the sheets do not show the query


@dataclass(frozen=True)
class QueryAnswer:
    """A query picture and its nearest library pictures: itself first if it is one of them, then by distance and id.
    Or words in place of the picture, whose distances no scale or likeness of pictures holds for."""

    query: str
    sources: tuple[Source, ...]
    thumbnail: bytes | None  # JPEG
    matches: tuple[QueryMatch, ...]
    words: QueryText | None = None

    @property
    def pictured(self) -> bool:
        """Whether the sheets show its neighbours as pictures."""
        return all(match.thumbnail is not None for match in self.matches)


@dataclass(frozen=True)
class EntryAnswers:
    """All answers of one entry."""

    entry: str  # the entry's true name
    k: int  # how many neighbours were asked for
    origin: Origin | None  # of the vectors; None if there is neither a query nor a result
    metric: str | None  # None if nothing was searched
    answers: tuple[QueryAnswer, ...]  # one for each distinct query picture, ordered by id
    rejected: tuple[Rejection, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)  # the question's filter, where and max_distance
    scale: DistanceScale | None = None  # of the model; None if it has none

    def likeness(self, answer: QueryAnswer, match: QueryMatch) -> str | None:
        """How alike a query and its match are, in a word; None without a scale, except for the same picture, and for
        words."""
        if answer.words is not None:
            return None
        limits = None if self.scale is None or self.metric is None else self.scale.limits(self.metric)
        return distance_limits.likeness(limits, shortest(match.distance), match.id == answer.query)

    def nothing_similar(self, answer: QueryAnswer) -> bool:
        """Whether a query has matches and all of them are weak."""
        return {self.likeness(answer, match) for match in answer.matches} == {WEAK}

    @property
    def searched(self) -> bool:
        """Whether there was a library to search and a picture to search for."""
        return self.metric is not None

    @property
    def library_size(self) -> int | None:
        """The number of distinct pictures in the library if it is less than K; otherwise None, also if that is not
        known, since the question admits only some."""
        if not self.searched or self.limits:
            return None
        most = max((len(answer.matches) for answer in self.answers), default=self.k)
        return most if most < self.k else None


@dataclass
class _Merge:
    """The K best so far of each query, so that only one segment's table is in memory at a time."""

    k: int
    origin: Origin | None = None
    metric: str | None = None
    best: dict[str, list[QueryMatch]] = field(default_factory=dict)

    def expect(self, table: ImageTable | NeighbourTable) -> None:
        """Raises StageError unless everything so far comes from the table's model and backend, and from pictures of its
        fit."""
        ours, theirs = self.origin or table.origin, table.origin
        if ours.computed_by != theirs.computed_by:
            raise StageError(
                f"results of two models cannot be mixed: {ours.named} and {theirs.named}. Both must come from one "
                "commit of the repo models; wait until features, features-queries and search have recomputed "
                "everything, or start the search again with: lookalike deploy --reprocess search"
            )
        if ours.fit != theirs.fit:
            raise StageError(
                f"results of pictures with FIT={ours.fit} and with FIT={theirs.fit} cannot be mixed: set the same FIT "
                "in the specs of preprocess and preprocess-queries and run: lookalike deploy"
            )
        self.origin = theirs

    def wanted(self, table: pa.Table) -> NDArray[np.bool_]:
        """Which rows of a further table may be among the best: with 16 segments, a quarter of them."""
        worst = {query: best[-1].distance for query, best in self.best.items() if len(best) == self.k}
        queries = table["query"].to_pylist()
        limits = np.fromiter((worst.get(query, np.inf) for query in queries), np.float64, len(queries))
        return table["distance"].to_numpy() <= limits  # type: ignore[no-any-return]

    def add(self, table: NeighbourTable) -> None:
        self.expect(table)
        if self.metric not in (None, table.metric):
            raise StageError(
                f"distances of two metrics cannot be mixed: {self.metric} and {table.metric}. Reprocess the search: "
                "lookalike deploy --reprocess search"
            )
        if table.k < self.k:
            raise StageError(
                f"render needs K={self.k} neighbours, but search kept only {table.k}: "
                "set K to the same value in specs/search.json and specs/render.json, and deploy both"
            )
        self.metric = table.metric
        for query, matches in _by_query(table):
            known = self.best.get(query, [])
            self.best[query] = sorted(_united([*known, *matches]), key=_rank(query))[: self.k]


def merge(
    entry: str,
    k: int,
    queries: ImageTable | None,
    segments: Iterable[SegmentReader],
    rejected: Iterable[Rejection] = (),
    thumbnails: Sequence[bytes] | None = None,
    limits: Mapping[str, Any] | None = None,
    scale: bytes = b"",
    texts: Iterable[QueryText] = (),
) -> EntryAnswers:
    """Merges the results of all segments into the `k` nearest distinct pictures of each query of `entry`.

    Reads one segment after the other, only the rows that may still be among the best. Equal ids are one neighbour with
    all their sources. `queries` is None if the entry's own table is missing (the join is an outer one); the answers
    then lack the queries' names and pictures. `thumbnails`: JPEG files of the queries, None for none. `limits`: the
    question's filters, which the tables keep to, and its max_distance, beyond which nothing counts. `scale`: the
    content of a scale.json, which counts only for the model of the vectors. `texts`: the
    queries that are words. Raises StageError if the tables come from different models, fits or metrics, or were made
    for fewer than `k` neighbours.
    """
    merged = _Merge(k)
    limits = limits or {}
    most = limits.get("max_distance", np.inf)
    if queries is not None:
        merged.expect(queries)
    for read in segments:
        merged.add(read(merged.wanted))
    known, words = _queries(queries, thumbnails), {each.id: each for each in texts}
    answers = []
    for query in sorted({*known, *merged.best}):
        sources, thumbnail = known.get(query, ((), None))
        matches = tuple(_inside_first(each, limits) for each in merged.best.get(query, ()) if each.distance <= most)
        answers.append(QueryAnswer(query, sources, thumbnail, matches, words.get(query)))
    known_scale = distance_scale.read(scale, merged.origin.model) if merged.origin is not None else None
    return EntryAnswers(entry, k, merged.origin, merged.metric, tuple(answers), tuple(rejected), limits, known_scale)


def json_lines(answers: EntryAnswers) -> Iterator[str]:
    """The lines of neighbors.jsonl, without line ends: one query each, ordered by id."""
    for answer in answers.answers:
        value = {
            "query": answer.query,
            "sources": paths(answer.sources),
            "k": answers.k,
            "metric": answers.metric,
            **answers.limits,
            **({} if answer.words is None else answer.words.said),
            "backbone": answers.origin.backbone if answers.origin else "",
            "model": answers.origin.model if answers.origin else None,
            "neighbors": [
                {
                    "id": match.id,
                    "distance": shortest(match.distance),
                    "likeness": answers.likeness(answer, match),
                    "sources": paths(match.sources),
                }
                for match in answer.matches
            ],
        }
        yield json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _queries(
    images: ImageTable | None, thumbnails: Sequence[bytes] | None
) -> dict[str, tuple[tuple[Source, ...], bytes | None]]:
    """The sources and the thumbnail of each query in the entry's own table."""
    if images is None:
        return {}
    shown: Sequence[bytes | None] = [None] * len(images) if thumbnails is None else thumbnails
    rows = zip(images.ids, images.sources, shown, strict=True)
    return {id: (tuple(sources), thumbnail or None) for id, sources, thumbnail in rows}


def _by_query(table: NeighbourTable) -> Iterator[tuple[str, list[QueryMatch]]]:
    rows: dict[str, list[QueryMatch]] = {}
    for row in table:
        match = QueryMatch(row.id, row.distance, tuple(row.sources), row.thumbnail)
        rows.setdefault(row.query, []).append(match)
    yield from rows.items()


def _united(matches: Iterable[QueryMatch]) -> list[QueryMatch]:
    """One match for each id. Equal pictures have equal vectors, so their distances are equal too."""
    by_id: dict[str, QueryMatch] = {}
    for match in matches:
        twin = by_id.get(match.id)
        if twin is not None:
            sources = unite(twin.sources, match.sources)
            match = QueryMatch(match.id, min(twin.distance, match.distance), sources, twin.thumbnail or match.thumbnail)
        by_id[match.id] = match
    return list(by_id.values())


def _inside_first(match: QueryMatch, limits: Mapping[str, Any]) -> QueryMatch:
    order = path_masks.inside_first(match.sources, limits.get("filter", ""))
    return replace(match, sources=tuple(match.sources[number] for number in order))


def _rank(query: str) -> Callable[[QueryMatch], tuple[float, bool, str]]:
    """Orders a query's matches as search does: by distance, among equals the picture itself first, then by id."""
    return lambda match: (match.distance, match.id != query, match.id)


def shortest(distance: float) -> float:
    """The float with the fewest digits that reads back as the same float32."""
    return float(str(np.float32(distance)))
