"""The verdicts on a finder of copies: which copies it finds, and which other pairs. Knows no program that finds copies
and no table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studies.duplicates.families import CHANGES, ORIGINAL, Member
from studies.duplicates.finders import Finder

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Judged:
    """A finder's verdicts on a set. right: for each change, which copies are found with their originals. wrong: which
    of all pairs of pictures from two families are found, in the library of the originals and the copies by one change,
    for each change in turn; near: which of them are parts of one photograph. unrelated: which of all pairs of pictures
    from two wholes are found, by whatever changes."""

    right: Mapping[str, Mask]
    wrong: Mask
    near: Mask
    unrelated: Mask

    def recall(self, change: str | None = None) -> float:
        """The share of the copies, by one change or by all, that are found with their originals."""
        of = np.concatenate(list(self.right.values())) if change is None else self.right[change]
        return float(of.mean()) if len(of) else 0.0

    def precision(self) -> float:
        """The share of the pairs found that are a copy and its original; 1 if none is found."""
        right, wrong = sum(int(each.sum()) for each in self.right.values()), int(self.wrong.sum())
        return right / (right + wrong) if right + wrong else 1.0

    def mistakes(self, near: bool) -> float:
        """The pairs found in a million of pairs of different pictures: of parts of one photograph if `near`, or of
        unrelated pictures."""
        kind = self.wrong[self.near] if near else self.unrelated
        return float(1e6 * kind.mean()) if len(kind) else 0.0


def judge(finder: Finder, members: Sequence[Member], places: NDArray[np.intp]) -> Judged:
    """The verdicts on these members. places: (n,), the number of each among the pictures that the finder has seen."""
    family = np.asarray([each.family for each in members])
    whole = np.unique([each.whole for each in members], return_inverse=True)[1]
    change = np.asarray([each.change for each in members])
    every = _found(finder, places)
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


def _found(finder: Finder, places: NDArray[np.intp]) -> Mask:
    """(n, n): which pairs of these pictures are found."""
    rows = {place: row for row, place in enumerate(places.tolist())}
    found = np.zeros((len(places), len(places)), np.bool_)
    for one, other in finder.pairs:
        if one in rows and other in rows:
            found[rows[one], rows[other]] = found[rows[other], rows[one]] = True
    return found
