"""Rankings judged by labels: the neighbours that are right, the labels taken for one another, and the pairs to
calibrate with. Knows no files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stages.files.tables.ranking_table import RankingTable
from stages.quality.measures import RelevanceMatrix


@dataclass(frozen=True)
class RankingVerdicts:
    """n queries with their verdicts.

    rankings: the judged table, whose neighbours are rows of its own. judged: see there; all queries, those that do not
    count as well. names: the labels, sorted, which the codes mean.
    neighbours: int32 (n, K), the neighbours as numbers of queries, and distances: float32 (n, K); valid to the depth.
    """

    rankings: RankingTable
    judged: RelevanceMatrix
    names: Sequence[str]
    neighbours: npt.NDArray[np.int32]
    distances: npt.NDArray[np.float32]


@dataclass(frozen=True)
class LabelConfusion:
    """A label with another one that its pictures are taken for: the queries whose nearest has the other, and all their
    neighbours that have it; and the nearest such pair, as numbers of queries, with its distance."""

    label: int
    other: int
    nearest: int
    among: int
    query: int
    neighbour: int
    distance: float


def judge(rankings: RankingTable) -> RankingVerdicts:
    """The verdicts on rankings whose neighbours are rows of the same table."""
    names, codes = np.unique(np.asarray(rankings.labels, dtype=object), return_inverse=True)
    labels = codes.astype(np.int32)
    valid = np.arange(rankings.k) < rankings.depths[:, None]
    neighbours = np.full(valid.shape, -1, np.int32)
    neighbours[valid] = rankings.neighbours.values
    distances = np.full(valid.shape, np.inf, np.float32)
    distances[valid] = rankings.distances.values
    right = valid & (labels[neighbours] == labels[:, None])
    relevant = np.bincount(labels)[labels].astype(np.int64) - 1
    judged = RelevanceMatrix(labels, right, rankings.depths.astype(np.int32), relevant)
    return RankingVerdicts(rankings, judged, names.tolist(), neighbours, distances)


def pairs(verdicts: RankingVerdicts) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Each pair of a query and a neighbour once, whichever of them is the query, near ones first: the distances (n,)
    and whether both have the same label."""
    query, rank = np.nonzero(verdicts.neighbours >= 0)
    other = verdicts.neighbours[query, rank].astype(np.int64)
    key = np.minimum(query, other) * len(verdicts.neighbours) + np.maximum(query, other)
    _, firsts = np.unique(key, return_index=True)
    distances = verdicts.distances[query, rank][firsts]
    order = np.argsort(distances, kind="stable")
    return distances[order], verdicts.judged.right[query, rank][firsts][order]


def reach(verdicts: RankingVerdicts) -> float:
    """The distance to which half of the rankings know all neighbours; infinite if half of them end with the last
    labelled picture there is."""
    judged = verdicts.judged
    ends = np.full(len(judged), 0.0)
    known = np.flatnonzero(judged.depths > 0)
    ends[known] = verdicts.distances[known, judged.depths[known] - 1]
    ends[judged.depths == len(judged) - 1] = np.inf
    return float(np.sort(ends)[(len(ends) - 1) // 2]) if len(ends) else np.inf


def confusions(verdicts: RankingVerdicts) -> list[LabelConfusion]:
    """All confusions of queries that count: the most frequent first, by the nearest, then among all neighbours."""
    judged = verdicts.judged
    wrong = (verdicts.neighbours >= 0) & ~judged.right & judged.counts[:, None]
    query, rank = np.nonzero(wrong)
    other = verdicts.neighbours[query, rank]
    key = judged.labels[query].astype(np.int64) * len(verdicts.names) + judged.labels[other]
    distances = verdicts.distances[query, rank]
    order = np.lexsort((rank, query, distances, key))
    kinds, firsts, among = np.unique(key[order], return_index=True, return_counts=True)
    nearest = np.bincount(np.searchsorted(kinds, key[rank == 0]), minlength=len(kinds))
    examples = order[firsts]
    found = [
        LabelConfusion(
            int(kind // len(verdicts.names)),
            int(kind % len(verdicts.names)),
            int(nearest[place]),
            int(among[place]),
            int(query[example]),
            int(other[example]),
            float(distances[example]),
        )
        for place, (kind, example) in enumerate(zip(kinds.tolist(), examples.tolist(), strict=True))
    ]
    return sorted(found, key=lambda each: (-each.nearest, -each.among, each.label, each.other))


def matrix(verdicts: RankingVerdicts, shown: Sequence[int]) -> npt.NDArray[np.int64]:
    """The neighbours of queries that count, by the query's label (rows) and their own (columns), of these labels and,
    last, of all others: int64 (n + 1, n + 1)."""
    judged = verdicts.judged
    place = np.full(len(verdicts.names), len(shown), np.int64)
    place[list(shown)] = np.arange(len(shown))
    query, rank = np.nonzero((verdicts.neighbours >= 0) & judged.counts[:, None])
    of, to = judged.labels[query], judged.labels[verdicts.neighbours[query, rank]]
    size = len(shown) + 1
    found: npt.NDArray[np.int64] = np.bincount(place[of] * size + place[to], minlength=size * size)
    return found.reshape(size, size)
