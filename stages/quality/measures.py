"""Measures of rankings against labels: precision, recall, mean average precision and reciprocal rank, with intervals.

NumPy alone; knows no files. A query is right about a neighbour that has its label. The measures of a query at k:

- precision: the share of right ones among its k nearest, or among all that are known if these are fewer;
- recall: the share of all other pictures of its label that are among its k nearest;
- average precision: the mean over the right ones of the precision at their ranks, where those missing count as 0, of as
  many as could be right: the other pictures of its label, or the known neighbours if these are fewer;
- reciprocal rank: 1 over the rank of the first right one, 0 without one.

A query counts if another picture has its label and a neighbour is known. Micro is the mean over queries, macro the mean
over labels of the means of their queries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

RESAMPLES = 1000
"""Most resamples of an interval; fewer where they would take too long."""

FEWEST = 100
"""Fewest resamples of an interval."""

DIGITS = 6
"""Decimal digits of the numbers in reports, in which the order of sums does not show."""

_WORK = 2 << 30  # numbers that all resamples together may touch

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RelevanceMatrix:
    """n queries with their neighbours judged, K at most each.

    labels: int32 (n,), codes. right: bool (n, K), false past the depth. depths: int32 (n,), the neighbours known.
    relevant: int64 (n,), the other pictures that have the query's label.
    """

    labels: npt.NDArray[np.int32]
    right: npt.NDArray[np.bool_]
    depths: npt.NDArray[np.int32]
    relevant: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def counts(self) -> npt.NDArray[np.bool_]:
        """Whether each query counts, bool (n,)."""
        return (self.relevant > 0) & (self.depths > 0)

    def part(self, rows: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> RelevanceMatrix:
        """Some of the queries."""
        return RelevanceMatrix(self.labels[rows], self.right[rows], self.depths[rows], self.relevant[rows])


def rounded(value: float) -> float:
    """A number of a report; never -0."""
    return round(float(value), DIGITS) + 0.0


def ranks(k: int) -> list[int]:
    """The ranks to measure at: all to 10, some beyond, and k."""
    return sorted({*range(1, min(k, 10) + 1), *(each for each in (20, 50, 100, 200, 500) if each < k), k})


def names(ks: Sequence[int]) -> list[str]:
    """The measures: precision and recall at each of `ks`, then the average precision and the reciprocal rank at the
    last of them."""
    return [*(f"precision@{k}" for k in ks), *(f"recall@{k}" for k in ks), f"mAP@{ks[-1]}", f"MRR@{ks[-1]}"]


def measure(judged: RelevanceMatrix, ks: Sequence[int]) -> _Floats:
    """The measures of n queries that count, float64 (n, m), in the order of their `names`."""
    hits = np.cumsum(judged.right, axis=1, dtype=np.int64)
    places = np.arange(1, judged.right.shape[1] + 1)
    at = [k - 1 for k in ks]
    seen = np.minimum(np.asarray(ks), judged.depths[:, None])
    precision = hits[:, at] / seen
    recall = hits[:, at] / judged.relevant[:, None]
    possible = np.minimum(judged.relevant, judged.depths)
    average = np.where(judged.right, hits / places, 0).sum(axis=1) / possible
    first = np.where(judged.right.any(axis=1), 1 / (1 + judged.right.argmax(axis=1)), 0)
    return np.column_stack([precision, recall, average, first])


@dataclass(frozen=True)
class MeanEstimate:
    """A mean with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class MeasureEstimates:
    """micro and macro: an estimate of each measure, by name. resamples: of each interval."""

    micro: Mapping[str, MeanEstimate]
    macro: Mapping[str, MeanEstimate]
    resamples: int


def estimate(judged: RelevanceMatrix, ks: Sequence[int]) -> MeasureEstimates:
    """The means of all measures, with intervals from resampled queries. Raises ValueError without queries.

    Equal queries (by label, depth and judgements) are drawn as one group, by their number: the same distribution as of
    one by one, in a fraction of the time. The seed is the hash of the groups, so equal input gives equal intervals.
    """
    groups, numbers = _grouped(judged)
    values = measure(groups, ks)
    starts = np.flatnonzero(np.diff(groups.labels, prepend=-1))  # groups are sorted by label
    micro, macro = means(numbers, values, starts)
    seed = groups.right.tobytes() + groups.labels.tobytes() + numbers.tobytes()
    drawn = resampled_means(numbers, values, starts, seed, int(np.clip(_WORK // (values.size + 1), FEWEST, RESAMPLES)))
    found = (_with_intervals(each, drawn[:, at]) for at, each in enumerate((micro, macro)))
    of_queries, of_labels = (dict(zip(names(ks), each, strict=True)) for each in found)
    return MeasureEstimates(of_queries, of_labels, len(drawn))


def _grouped(judged: RelevanceMatrix) -> tuple[RelevanceMatrix, npt.NDArray[np.int64]]:
    """One query of each group of equal ones, sorted by label, and the numbers of queries in the groups."""
    packed = np.packbits(judged.right, axis=1)
    key = np.column_stack([_bytes(judged.labels), _bytes(judged.depths), _bytes(judged.relevant), packed])
    rows = np.ascontiguousarray(key).view(np.dtype((np.void, key.shape[1]))).ravel()
    _, firsts, numbers = np.unique(rows, return_index=True, return_counts=True)
    return judged.part(firsts), numbers


def _bytes(values: npt.NDArray[np.int32] | npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    return values.astype(">i4").view(np.uint8).reshape(-1, 4)


def resampled_means(
    numbers: npt.NDArray[np.int64], values: _Floats, starts: npt.NDArray[np.int64], seed: bytes, resamples: int
) -> _Floats:
    """The `means` of as many queries that are drawn again and again, (resamples, 2, m). seed: equal ones draw alike."""
    lot = np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(seed).digest()[:16], "big")))
    queries = int(numbers.sum())
    shares = numbers / queries
    return np.stack([means(lot.multinomial(queries, shares), values, starts) for _ in range(resamples)])


def means(numbers: npt.NDArray[np.int64], values: _Floats, starts: npt.NDArray[np.int64]) -> _Floats:
    """The means over queries and over labels, (2, m), of groups with so many queries each. starts: the first group of
    each label; a label without any query does not count."""
    weighted = numbers[:, None] * values
    of_labels = np.add.reduceat(numbers, starts)
    drawn = of_labels > 0
    macro = (np.add.reduceat(weighted, starts)[drawn] / of_labels[drawn, None]).mean(axis=0)
    return np.stack([weighted.sum(axis=0) / numbers.sum(), macro])


def _with_intervals(values: _Floats, drawn: _Floats) -> list[MeanEstimate]:
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    return [MeanEstimate(*map(float, each)) for each in zip(values, low, high, strict=True)]
