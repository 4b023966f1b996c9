"""The answer to a question: neighbours with their sources, what makes them equal or near, and where it all came from.

A function of a snapshot, the vectors and the question: HTTP, the page, the command and Python give the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.files.question import Question
from stages.knn.backend import Distances, Mask, Rows, Vectors
from stages.knn.top_k import NONE
from stages.knn.vector_set import VectorSet
from stages.quality.distance_scale import NEAR_COPY, SAME
from stages.quality.entry_answers import shortest
from stages.record.hashes import Hashes, differing
from stages.serving.follow.snapshots import Snapshot
from stages.serving.search.search_engine import SearchResult

NEAR, NEAR_BITS = 0.8, 12
"""Pairs of pictures within this Euclidean distance, or that of changed copies by the model's scale, whose perceptual
hashes differ in so few bits are near-duplicates, whichever metric a question has. Less than THRESHOLD and HASH_BITS of
specs/duplicates, since nobody looks at them."""


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
    return snapshot.searching.combined(
        points,
        asked.k,
        how=asked.combine,
        metric=asked.metric,
        known=rows,
        within=_within(snapshot, asked),
    )


def search_each(snapshot: Snapshot, points: Vectors, rows: Sequence[int | None], asked: Question) -> SearchResult:
    """The same for each point alone, all with one product."""
    return snapshot.searching.search(
        points, asked.k, metric=asked.metric, known=rows, within=_within(snapshot, asked), exact=asked.exact
    )


def _metric(snapshot: Snapshot, asked: Question) -> str:
    return asked.metric or snapshot.library.metric


def _within(snapshot: Snapshot, asked: Question) -> Mask | None:
    return snapshot.library.paths.rows(asked.filter) if asked.filter else None


def answer(
    snapshot: Snapshot, asked: Question, pictures: Sequence[QueryPicture], points: Vectors, found: SearchResult
) -> dict[str, Any]:
    """The answer in JSON's types, without its times. points: the pictures' vectors, float32 (n, d). found: of one
    question."""
    distances, rows = found.topk.distances[0], found.topk.rows[0]
    kept = rows != NONE
    if asked.max_distance is not None:
        kept &= distances <= asked.max_distance
    distances, rows = distances[kept], rows[kept]
    return {
        "neighbours": list(_neighbours(snapshot, asked, pictures, points, distances, rows)),
        "pictures": [each.as_data() for each in pictures],
        "k": asked.k,
        "metric": _metric(snapshot, asked),
        "combine": asked.combine,
        "filter": asked.filter,
        "max_distance": asked.max_distance,
        "exact": found.exact,
        "recall": found.recall,
        **origin(snapshot),
    }


def origin(snapshot: Snapshot) -> dict[str, Any]:
    """Where the answers of a snapshot come from: its commits, its model and the kinds of devices."""
    vectors, spec = snapshot.library.origin, snapshot.spec
    return {
        "commits": snapshot.commits.as_data(),
        "model": {
            "name": spec.name,
            "described": spec.described,
            "sha256": spec.sha256,
            "dimension": vectors.dimension,
            "image_size": vectors.image_size,
            "fit": vectors.fit,
        },
        "devices": {"index": list(vectors.devices), "service": snapshot.device},
    }


def addresses(id: str) -> Mapping[str, str]:
    """The paths of a library picture's thumbnail and original."""
    return {"thumbnail": f"/images/{id}", "original": f"/originals/{id}"}


def _neighbours(
    snapshot: Snapshot,
    asked: Question,
    pictures: Sequence[QueryPicture],
    points: Vectors,
    distances: Distances,
    rows: Rows,
) -> Iterator[dict[str, Any]]:
    library, similarity = snapshot.library, snapshot.similarity
    hashes = np.array([library.hash(row) for row in rows.tolist()], np.uint64)
    own = {each.id for each in pictures}
    vectors = VectorSet(library.vectors(rows))
    limit = NEAR if snapshot.scale is None else snapshot.scale.euclidean.changed
    near = _near(pictures, VectorSet(points), vectors, hashes, limit)
    groups = _groups(vectors, hashes, limit)
    calibrated = similarity is not None and similarity.metric == _metric(snapshot, asked)
    likely = similarity.per_cent(distances) if similarity is not None and calibrated and len(rows) else None
    for place, row in enumerate(rows.tolist()):
        id = library.id(row)
        yield {
            "rank": place + 1,
            "id": id,
            "distance": shortest(float(distances[place])),
            "likeness": _likeness(snapshot, asked, id in own, bool(near[place]), float(distances[place])),
            "similarity": None if likely is None else 100.0 if id in own else likely[place],
            "same": id in own,
            "near": id in own or bool(near[place]),
            "group": groups[place],
            "sources": [source_data(each) for each in library.sources(row)],
            **addresses(id),
        }


def _likeness(snapshot: Snapshot, asked: Question, same: bool, near: bool, distance: float) -> str | None:
    """How alike a picture is to those that were asked about, in a word; None without a scale, but for copies."""
    if same or near:
        return SAME if same else NEAR_COPY
    return None if snapshot.scale is None else snapshot.scale.limits(_metric(snapshot, asked)).likeness(distance)


def source_data(source: Any) -> dict[str, Any]:
    """A source in JSON's types."""
    return dict(source._asdict())


def _near(
    pictures: Sequence[QueryPicture], points: VectorSet, vectors: VectorSet, hashes: Hashes, limit: float
) -> Mask:
    """Which of n vectors, with their hashes, are near-duplicates of any picture, with its point."""
    own = np.array([each.hash for each in pictures], np.uint64)
    picture, place = np.nonzero(differing(own[:, None], hashes) <= NEAR_BITS)
    found = np.zeros(len(hashes), np.bool_)
    found[place[points.distances(picture, vectors, place) <= limit]] = True
    return found


def _groups(vectors: VectorSet, hashes: Hashes, limit: float) -> list[int]:
    """The number of each picture's group: the nearest picture of all and its near-duplicates share one, and so on with
    the rest. Groups are numbered from 1 in the order of their first pictures."""
    first, second = np.nonzero(np.triu(differing(hashes[:, None], hashes) <= NEAR_BITS, 1))
    within = vectors.distances(first, vectors, second) <= limit
    near = np.eye(len(hashes), dtype=np.bool_)
    near[first[within], second[within]] = True
    groups = np.zeros(len(hashes), np.int64)
    for place in range(len(hashes)):
        if not groups[place]:
            groups[near[place] & (groups == 0)] = groups.max() + 1
    return [int(each) for each in groups]
