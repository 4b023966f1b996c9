"""Questions of one or several points each, to a library of several parts, and the distances that answer them. Searches
nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from stages.knn.backend import BoundsProvider, Distances, Floats, Mask, Rows
from stages.knn.blas_threads import others_turn
from stages.knn.top_k import NONE
from stages.knn.vector_set import VectorSet

PointCombination = Literal["any", "all"]
"""The distance of a row from several points: that of the nearest point, or that of the farthest."""

DistanceMeasure = Callable[[VectorSet, Rows, VectorSet, Rows], Distances]

_SCATTERED = 64
"""Pairs for each part up to which their vectors are put together: a call then takes longer than copying these."""


@dataclass(frozen=True)
class LibraryPart:
    """Consecutive rows of a library, from `start` on: their vectors, at least one, and what bounds the distances."""

    start: int
    points: VectorSet
    bounding: BoundsProvider

    @property
    def rows(self) -> slice:
        """The part's rows in the library."""
        return slice(self.start, self.start + len(self.points))


@dataclass(frozen=True)
class JointQueries:
    """m questions of at least one point each.

    points: of all questions, those of the first one first. counts: int64 (m,), the number of each one's points. of,
    out: int64 (p,), rows that are left out: question `of[i]` does not get row `out[i]`.
    """

    points: VectorSet
    counts: Rows
    how: PointCombination
    of: Rows
    out: Rows

    @classmethod
    def single(cls, points: VectorSet, itself: Rows) -> "JointQueries":
        """A question for each point, which does not get the row in `itself`, int64 (m,), unless this is NONE."""
        of = np.flatnonzero(itself != NONE)
        return cls(points, np.ones(len(points), np.int64), "any", of, itself[of])

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def firsts(self) -> Rows:
        """The first point of each question, int64 (m,)."""
        firsts: Rows = np.cumsum(self.counts) - self.counts
        return firsts

    @property
    def joint(self) -> bool:
        """Whether any question has several points."""
        return len(self.points) != len(self)

    def part(self, some: slice) -> "JointQueries":
        """Some of the questions, consecutive ones."""
        firsts = np.append(self.firsts, len(self.points))
        inside = (self.of >= some.start) & (self.of < some.stop)
        return JointQueries(
            self.points.part(slice(int(firsts[some.start]), int(firsts[min(some.stop, len(self))]))),
            self.counts[some],
            self.how,
            self.of[inside] - some.start,
            self.out[inside],
        )

    def leaving_out(self, some: Mask) -> "JointQueries":
        """The questions, of whose pairs only some are left out."""
        return replace(self, of=self.of[some], out=self.out[some])

    def combined(self, numbers: Floats) -> Floats:
        """Of numbers for points, (points, n) in order, those for questions, (m, n): the smallest or the largest."""
        reduce = np.minimum if self.how == "any" else np.maximum
        reduced: Floats = reduce.reduceat(numbers, self.firsts, axis=0)
        return reduced


def pair_distances(
    measure: DistanceMeasure, questions: JointQueries, parts: Sequence[LibraryPart], question: Rows, row: Rows
) -> Distances:
    """By `VectorSet.distances` or `VectorSet.lower_bounds`, float32 (pairs,): of question `question[i]` and row
    `row[i]` of the library."""
    counts = questions.counts[question]
    ends = np.cumsum(counts)
    point = np.arange(counts.sum()) + np.repeat(questions.firsts[question] - (ends - counts), counts)
    found = _of_points(measure, questions.points, parts, point, np.repeat(row, counts))
    if not questions.joint or not len(question):
        return found
    reduce = np.minimum if questions.how == "any" else np.maximum
    reduced: Distances = reduce.reduceat(found, ends - counts)
    return reduced


def gathered(parts: Sequence[LibraryPart], row: Rows) -> tuple[Sequence[LibraryPart], Rows]:
    """Parts that have these rows of the library, and their rows there. Few rows of several parts are put together into
    one, so that all of them are compared in one call."""
    if len(parts) == 1 or len(row) > _SCATTERED * len(parts):
        return parts, row
    with others_turn():
        points = points_at(parts, row)
    return [LibraryPart(0, points, parts[0].bounding)], np.arange(len(row))


def points_at(parts: Sequence[LibraryPart], row: Rows) -> VectorSet:
    """The vectors of these rows of the library, put together."""
    of = _part_of(parts, row)
    return VectorSet.gathered([each.points for each in parts], of, row - np.array([each.start for each in parts])[of])


def _part_of(parts: Sequence[LibraryPart], row: Rows) -> Rows:
    """The number of the part that has each row."""
    at: Rows = np.searchsorted([part.start for part in parts], row, side="right") - 1
    return at


def _of_points(
    measure: DistanceMeasure, points: VectorSet, parts: Sequence[LibraryPart], point: Rows, row: Rows
) -> Distances:
    found = np.empty(len(row), np.float32)
    at = _part_of(parts, row)
    for each in np.unique(at).tolist():
        chosen = np.flatnonzero(at == each)
        with others_turn():
            found[chosen] = measure(points, point[chosen], parts[each].points, row[chosen] - parts[each].start)
    return found
