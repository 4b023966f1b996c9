"""The verdicts on a finder of copies: the distances of copies and of other pairs, precision, recall, and the thresholds
that follow from them by one rule. Knows no program that finds copies and no table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.families import CHANGES, ORIGINAL, Member
from benchmarks.finders import Finder

PHOTOGRAPHS, DRAWINGS = "photographs", "drawings"
RIGHT = {PHOTOGRAPHS: 0.98, DRAWINGS: 0.5}
"""The precision on each set that a threshold is chosen for, on the half that is not judged afterwards."""
LOOKED_AT = 1_000
"""Of a million pairs of unrelated photographs, the most within THRESHOLD: so K=10 nearest are all of them for a picture
and a segment of 10,000, and `neighbours` need not look further."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A finder's verdicts on a set. right: for each change, the distances of the copies from their originals. wrong: of
    all pairs of pictures from two families, in the library of the originals and the copies by one change, for each
    change in turn; near: which of them are parts of one photograph. unrelated: of all pairs of pictures from two
    wholes, by whatever changes."""

    right: Mapping[str, NDArray[np.float64]]
    wrong: NDArray[np.float64]
    near: NDArray[np.bool_]
    unrelated: NDArray[np.float64]

    def recall(self, threshold: float, change: str | None = None) -> float:
        """The share of the copies, by one change or by all, that are found with their originals."""
        of = np.concatenate(list(self.right.values())) if change is None else self.right[change]
        return float((of <= threshold).mean()) if len(of) else 0.0

    def precision(self, threshold: float) -> float:
        """The share of the pairs found that are a copy and its original; 1 if none is found."""
        right = sum(int((each <= threshold).sum()) for each in self.right.values())
        wrong = int((self.wrong <= threshold).sum())
        return right / (right + wrong) if right + wrong else 1.0

    def mistakes(self, threshold: float, near: bool) -> float:
        """The pairs found in a million of pairs of different pictures: of parts of one photograph if `near`, or of
        unrelated pictures."""
        kind = self.wrong[self.near] if near else self.unrelated
        return float(1e6 * (kind <= threshold).mean()) if len(kind) else 0.0

    def within(self, other: "Judged", threshold: float) -> "Judged":
        """These verdicts for pairs that the other finder has within its threshold, and infinite for all others."""

        def kept(own: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.where(others <= threshold, own, np.inf)

        right = {name: kept(each, other.right[name]) for name, each in self.right.items()}
        return Judged(right, kept(self.wrong, other.wrong), self.near, kept(self.unrelated, other.unrelated))


def judge(finder: Finder, members: Sequence[Member], places: NDArray[np.intp]) -> Judged:
    """The verdicts on these members. places: (n,), the number of each among the pictures that the finder has seen."""
    family = np.asarray([each.family for each in members])
    whole = np.unique([each.whole for each in members], return_inverse=True)[1]
    change = np.asarray([each.change for each in members])
    every = finder.distances(places)
    right, wrong, near = {}, [], []
    for name in CHANGES:
        rows = np.flatnonzero((change == ORIGINAL) | (change == name))
        one, other = (rows[each] for each in np.triu_indices(len(rows), 1))
        same = family[one] == family[other]
        found = every[one, other]
        right[name] = found[same]
        wrong.append(found[~same])
        near.append((whole[one] == whole[other])[~same])
    unrelated = every[np.triu(whole[:, None] != whole, 1)]
    return Judged(right, np.concatenate(wrong), np.concatenate(near), unrelated)


def chosen(judged: Mapping[str, Judged], grid: Iterable[float]) -> float:
    """The largest threshold of the grid at which each set has the precision RIGHT, and at every smaller one; or 0."""
    best = 0.0
    for threshold in grid:
        if any(each.precision(threshold) < RIGHT[name] for name, each in judged.items()):
            break
        best = float(threshold)
    return best


def looked_at(vectors: Judged, grid: Iterable[float]) -> float:
    """The largest distance of the grid within which there are at most LOOKED_AT of a million pairs of unrelated
    photographs; or 0."""
    return max((float(each) for each in grid if vectors.mistakes(each, near=False) <= LOOKED_AT), default=0.0)
