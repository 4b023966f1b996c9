"""Calibration: from the distance of two pictures to the probability that they have the same label. NumPy alone.

The probability is the monotone function of the distance that is closest to the labels: isotonic regression by pooling
adjacent violators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

import numpy as np
import numpy.typing as npt

PROBABILITIES = (0.99, 0.95, 0.9, 0.8, 0.5)
"""The probabilities for which thresholds are stated."""

PROPOSED = 0.95
"""The probability of the threshold that is proposed."""

BINS = 24

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CalibrationBlock:
    """An interval of distances with one probability, that of `pairs` pairs."""

    low: float
    high: float
    probability: float
    pairs: int


@dataclass(frozen=True)
class DistanceThreshold:
    """The largest distance at which pairs have the same label with at least this probability, None without one; the
    pairs within it, the share of these with the same label, and the share of all such pairs found by it. limited:
    whether it could be larger, but too few pairs beyond are known."""

    probability: float
    distance: float | None
    pairs: int = 0
    share: float = 0.0
    recall: float = 0.0
    limited: bool = False


@dataclass(frozen=True)
class DistanceBin:
    """The pairs of a part of the range of distances: their number, and that of those with the same label."""

    low: float
    high: float
    pairs: int
    same: int


def isotonic(totals: _Floats, weights: _Floats) -> npt.NDArray[np.int64]:
    """The starts of the blocks of the weighted least-squares fit, which does not increase, of the values
    `totals / weights` (n,); its value in a block is the block's total over its weight."""
    starts: list[int] = []
    sums: list[float] = []
    masses: list[float] = []
    for place, (total, mass) in enumerate(zip(totals.tolist(), weights.tolist(), strict=True)):
        start = place
        while starts and sums[-1] * mass <= total * masses[-1]:  # the mean before is not larger
            start, total, mass = starts.pop(), total + sums.pop(), mass + masses.pop()
        starts.append(start)
        sums.append(total)
        masses.append(mass)
    return np.asarray(starts, np.int64)


def blocks(distances: npt.NDArray[np.float32], same: npt.NDArray[np.bool_]) -> list[CalibrationBlock]:
    """The calibration of pairs, from near to far: distances (n,), ascending, and whether both labels are the same."""
    if not len(distances):
        return []
    firsts = _pooled(distances, same)
    pairs, agreeing = _sums(np.ones(len(same)), firsts), _sums(same, firsts)
    starts = isotonic(agreeing, pairs)
    pairs, agreeing = _sums(pairs, starts), _sums(agreeing, starts)
    lows = firsts[starts]
    highs = np.append(lows[1:], len(distances)) - 1
    return [
        CalibrationBlock(float(distances[low]), float(distances[high]), share, int(number))
        for low, high, share, number in zip(lows, highs, (agreeing / pairs).tolist(), pairs.tolist(), strict=True)
    ]


def knots(calibration: Sequence[CalibrationBlock]) -> list[tuple[float, float]]:
    """Points (distance, probability) between which the probability is linear, and beyond which it is constant.
    Distances do not decrease, and probabilities do not increase."""
    found: list[tuple[float, float]] = []
    for each in calibration:
        found.append((each.low, each.probability))
        if each.high > each.low:
            found.append((each.high, each.probability))
    return found


def probability(knots: Sequence[tuple[float, float]], distances: npt.ArrayLike) -> _Floats:
    """The probabilities of distances by knots."""
    places, values = zip(*knots, strict=True)
    found: _Floats = np.interp(np.asarray(distances, np.float64), places, values)
    return found


def bins(distances: npt.NDArray[np.float32], same: npt.NDArray[np.bool_]) -> list[DistanceBin]:
    """Equal parts of the range from 0 to the largest distance, with their pairs."""
    top = float(distances[-1]) if len(distances) else 0.0
    if top <= 0:
        return [DistanceBin(0.0, 0.0, len(same), int(same.sum()))] if len(same) else []
    edges = np.linspace(0.0, top, BINS + 1)
    places = np.minimum(np.searchsorted(edges, distances.astype(np.float64), side="right") - 1, BINS - 1)
    pairs = np.bincount(places, minlength=BINS)
    agreeing = np.bincount(places, weights=same, minlength=BINS)
    return [
        DistanceBin(float(edges[at]), float(edges[at + 1]), int(pairs[at]), int(agreeing[at])) for at in range(BINS)
    ]


def thresholds(
    distances: npt.NDArray[np.float32], same: npt.NDArray[np.bool_], reach: float, probabilities: Sequence[float]
) -> list[DistanceThreshold]:
    """The thresholds for some probabilities, from the pairs within `reach`, rounded up to few digits where that takes
    in no further pair."""
    known = int(np.searchsorted(distances, reach, side="right"))
    within = blocks(distances[:known], same[:known])
    found = []
    for probability in probabilities:
        end = sum(each.pairs for each in within if each.probability >= probability)
        if not end:
            found.append(DistanceThreshold(probability, None))
            continue
        beyond = float(distances[end]) if end < len(distances) else np.inf
        distance, agreeing = _rounded(float(distances[end - 1]), beyond), int(same[:end].sum())
        recall = agreeing / max(1, int(same.sum()))
        found.append(
            DistanceThreshold(probability, distance, end, agreeing / end, recall, end == known and reach < np.inf)
        )
    return found


def _rounded(distance: float, beyond: float) -> float:
    """A number of few digits that is at least `distance` and less than `beyond`, in 32 bits as well."""
    exact = Decimal(distance)
    if not exact:
        return 0.0
    for digits in range(3, 12):
        step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
        found = float(exact.quantize(step, ROUND_CEILING))
        if distance <= found and np.float32(found) < beyond:
            return found
    return distance


def _pooled(distances: npt.NDArray[np.float32], same: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The starts of runs that are certain to lie in one block: pairs of one distance, and among the others those of
    different labels followed by those of the same."""
    tied = np.flatnonzero(np.append(True, distances[1:] > distances[:-1]))
    whole = _sums(same, tied) == np.diff(np.append(tied, len(same)))  # all pairs of this distance agree
    none = _sums(same, tied) == 0
    # A run goes on where no pair before has agreed without the next agreeing as well.
    goes_on = (none[:-1] & (none[1:] | whole[1:])) | (whole[:-1] & whole[1:])
    starts: npt.NDArray[np.int64] = tied[np.append(True, ~goes_on)]
    return starts


def _sums(values: npt.NDArray[np.generic], starts: npt.NDArray[np.int64]) -> _Floats:
    sums: _Floats = np.add.reduceat(values.astype(np.float64), starts)
    return sums
