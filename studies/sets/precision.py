"""Precision of a search by vectors, and whether two ways to make them differ by more than chance. Knows no pictures.

Every asked picture is searched for among all others but those of its house (leave one out).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studies.sets.labelled import Labelled

NEAREST = 3
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Judged:
    """For each asked picture, in order: whether the nearest has its label, the share of the NEAREST that have it, and
    the average precision over all of its label."""

    first: NDArray[np.bool_]
    nearest: NDArray[np.float64]
    average: NDArray[np.float64]


def judge(vectors: NDArray[np.float32], labelled: Labelled) -> Judged:
    """The verdicts on a search in a set by euclidean distance of its vectors (n, d). Equal distances rank by index."""
    labels, houses = labelled.labels, labelled.houses
    exact = vectors.astype(np.float64)
    squares = (exact**2).sum(axis=1)
    first, nearest, average = [], [], []
    for query in labelled.asked:
        others = np.flatnonzero(houses != houses[query])
        order = np.argsort(squares[others] - 2 * exact[others] @ exact[query], kind="stable")
        right = labels[others][order] == labels[query]
        first.append(bool(right[0]))
        nearest.append(right[:NEAREST].mean())
        ranks = np.flatnonzero(right) + 1
        average.append((np.arange(1, len(ranks) + 1) / ranks).mean() if len(ranks) else 0.0)
    return Judged(np.asarray(first), np.asarray(nearest), np.asarray(average))


@dataclass(frozen=True, slots=True)
class Difference:
    """Of the mean over sets of precision@1 from that of another way, with its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def certain(self) -> bool:
        """Whether it is more than chance."""
        return self.low > 0 or self.high < 0


def difference(ours: Sequence[Judged], theirs: Sequence[Judged]) -> Difference:
    """The same sets in the same order, judged for two ways: by how much `ours` is better.

    The interval is of the bootstrap: the queries of each set are drawn again, paired, with a fixed seed.
    """
    lot = np.random.default_rng(0)
    gains = [mine.first.astype(np.int64) - other.first for mine, other in zip(ours, theirs, strict=True)]
    means = np.mean([lot.choice(gain, (_RESAMPLES, len(gain))).mean(axis=1) for gain in gains], axis=0)
    low, high = np.percentile(means, [2.5, 97.5])
    return Difference(float(np.mean([gain.mean() for gain in gains])), float(low), float(high))


def by_chance(ours: Judged, theirs: Judged) -> float:
    """McNemar's exact test on one set: the probability of so unequal numbers of queries that only one way answers
    rightly, if both were equally good."""
    won, lost = int((ours.first & ~theirs.first).sum()), int((theirs.first & ~ours.first).sum())
    tail = sum(math.comb(won + lost, each) for each in range(min(won, lost) + 1))
    return min(1.0, float(2 * tail / 2 ** (won + lost)))
