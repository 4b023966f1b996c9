"""The answer to a question: neighbours with their sources, what makes them equal or near, and where it all came from.

A function of a snapshot, the vectors and the question: HTTP, the page, the command and Python give the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stages.files import path_masks
from stages.files.question import Question
from stages.knn.backend import Vectors
from stages.knn.vector_set import VectorSet
from stages.quality.distance_limits import NEAR_COPY, DistanceLimits, likeness
from stages.quality.entry_answers import shortest
from stages.record.sources import Source
from stages.serving.answer.near_duplicates import FoldedRanking, largest_distance, near_any
from stages.serving.follow.snapshots import Snapshot
from stages.serving.search.search_engine import SearchResult


@dataclass(frozen=True)
class QueryPicture:
    """A picture that was asked about. row: in the library, or None. hash: perceptual. width, height: in the file,
    upright."""

    name: str
    id: str
    row: int | None
    hash: int
    width: int
    height: int

    def as_data(self) -> dict[str, Any]:
        """The picture in JSON's types."""
        known = self.row is not None
        return {"id": self.id, "name": self.name, "width": self.width, "height": self.height, "known": known}


def search(snapshot: Snapshot, points: Vectors, rows: Sequence[int | None], asked: Question) -> SearchResult:
    """The nearest pictures to points, float32 (n, d), together. rows: of library pictures, their own rows. Raises
    StageError for a filter that is not valid, and for vectors that are not finite."""
    if len(points) == 1:
        return search_each(snapshot, points, rows, asked)
    within = snapshot.library.attributes.admitted(asked.where, asked.filter)
    return snapshot.searching.combined(
        points, asked.k, how=asked.combine, metric=asked.metric, known=rows, within=within
    )


def search_each(snapshot: Snapshot, points: Vectors, rows: Sequence[int | None], asked: Question) -> SearchResult:
    """The same for each point alone, all with one product."""
    within = snapshot.library.attributes.admitted(asked.where, asked.filter)
    return snapshot.searching.search(points, asked.k, metric=asked.metric, known=rows, within=within, exact=asked.exact)


def answer(
    snapshot: Snapshot,
    asked: Question,
    pictures: Sequence[QueryPicture],
    points: Vectors,
    found: SearchResult,
    ranking: FoldedRanking,
) -> dict[str, Any]:
    """The answer in JSON's types, without its times. points: the pictures' vectors, float32 (n, d), and then the
    question's own. ranking: the neighbours that were found."""
    metric = asked.metric or snapshot.library.metric
    return {
        "neighbors": list(_neighbours(snapshot, asked, metric, pictures, points, ranking)),
        "pictures": [each.as_data() for each in pictures],
        "k": asked.k,
        "metric": metric,
        "scale": None if snapshot.scale is None or not asked.of_pictures else asdict(snapshot.scale.limits(metric)),
        "combine": asked.combine,
        "filter": asked.filter,
        "where": asked.where,
        "max_distance": asked.max_distance,
        "text": asked.text,
        "without": list(asked.without),
        "unread": snapshot.words.unread(asked.text) if asked.text and snapshot.words is not None else "",
        "exact": found.exact,
        "recall": found.recall,
        **origin(snapshot),
    }


def origin(snapshot: Snapshot) -> dict[str, Any]:
    """Where the answers of a snapshot come from: its commits, its model and the kinds of devices."""
    vectors, spec = snapshot.library.origin, snapshot.spec
    is_there = snapshot.embedder is not None
    return {
        "commits": snapshot.commits.as_data(),
        "model": {
            "name": spec.name if is_there else vectors.backbone,
            "described": spec.described if is_there else vectors.backbone,
            "sha256": vectors.model,
            "dimension": vectors.dimension,
            "image_size": vectors.image_size,
            "fit": vectors.fit,
        },
        "devices": {"index": list(vectors.devices), "service": snapshot.device},
    }


def addresses(id: str, source: int) -> Mapping[str, str]:
    """The paths of a library picture's thumbnail, and of its original of that number."""
    return {"thumbnail": f"/images/{id}", "original": f"/originals/{id}{f'?source={source}' if source else ''}"}


def _neighbours(
    snapshot: Snapshot,
    asked: Question,
    metric: str,
    pictures: Sequence[QueryPicture],
    points: Vectors,
    ranking: FoldedRanking,
) -> Iterator[dict[str, Any]]:
    library, similarity = snapshot.library, snapshot.similarity
    limits = None if snapshot.scale is None else snapshot.scale.limits(metric)
    worded = asked.of_pictures  # otherwise distances have another scale
    distances, rows = ranking.distances, ranking.rows
    own = {each.id for each in pictures}
    vectors = VectorSet(library.vectors(rows))
    near = near_any(
        VectorSet(points),
        [each.hash for each in pictures],
        vectors,
        library.hashes(rows),
        largest_distance(snapshot.scale),
    )
    calibrated = worded and similarity is not None and similarity.metric == metric
    meant = library.paths.meant(asked.filter) if asked.filter else ""
    likely = similarity.per_cent(distances) if similarity is not None and calibrated and len(rows) else None
    for place, row in enumerate(rows.tolist()):
        id, sources = library.id(row), library.sources(row)
        distance, same, is_near = shortest(float(distances[place])), id in own, bool(near[place])
        each_file = source_data(snapshot, row, sources)
        order = path_masks.inside_first(sources, meant)
        yield {
            "rank": int(ranking.places[place]) + 1,
            "id": id,
            "distance": distance,
            "likeness": _likeness(limits, distance, same, is_near) if worded else None,
            "similarity": None if likely is None else 100.0 if same else likely[place],
            "same": same,
            "near": same or is_near,
            "group": int(ranking.groups[place]),
            "sources": [each_file[number] for number in order],
            **addresses(id, order[0]),
        }


def _likeness(limits: DistanceLimits | None, distance: float, same: bool, near: bool) -> str | None:
    return NEAR_COPY if near and not same else likeness(limits, distance, same)


def source_data(snapshot: Snapshot, row: int, sources: Sequence[Source]) -> list[dict[str, Any]]:
    """The sources of a picture in JSON's types, each with its number, as the address of its original has it, and with
    what else is known of it."""
    known = snapshot.library.attributes.table.facts(row, sources)
    return [
        {**source._asdict(), "number": number, **({"attributes": facts} if facts else {})}
        for number, (source, facts) in enumerate(zip(sources, known, strict=True))
    ]


def listed_picture(snapshot: Snapshot, row: int, path: str) -> dict[str, Any]:
    """A picture in a listing, with the number and the camera of its file there, and all its sources."""
    id, sources = snapshot.library.id(row), snapshot.library.sources(row)
    number = next((at for at, each in enumerate(sources) if each.path == path), 0)
    facts = {"id": id, "path": path, "number": number, "camera": sources[number].camera}
    return {**facts, "sources": source_data(snapshot, row, sources), **addresses(id, number)}
