"""The exact search for few queries at a time, in a library of several parts: from lower bounds of all distances.

The k rows with the least bounds are compared, and then every row whose bound does not exceed the worst of these
distances: nothing is guessed, so nothing is asked twice. The same holds for the pictures that a filter admits, and for
several points asked together, whose bounds combine as their distances do. `VectorSet.distances` alone counts, as in
`Certified`. Knows no files and no pictures.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from stages.knn.backend import Bounding, Bounds, Distances, Floats, Mask, Rows
from stages.knn.selection import least, smallest
from stages.knn.threads import in_threads, others_turn
from stages.knn.topk import NONE, TopK, empty, merge
from stages.knn.vectorset import UNIT_ROUNDING, VectorSet

Combination = Literal["any", "all"]
"""The distance of a row from several points: that of the nearest point, or that of the farthest."""

Measure = Callable[[VectorSet, Rows, VectorSet, Rows], Distances]

_EXTRA = 28
"""Rows beyond k whose distances are looked at before all others."""

_AT_ONCE = 32 << 20
"""Bytes of bounds in memory at once."""

_IN_CACHE = 1 << 19
"""Bytes of bounds that are searched at once, which stay in a core's second-level cache."""


@dataclass(frozen=True)
class Part:
    """Consecutive rows of a library, from `start` on: their vectors, at least one, and what bounds the distances."""

    start: int
    points: VectorSet
    bounding: Bounding

    @property
    def rows(self) -> slice:
        """The part's rows in the library."""
        return slice(self.start, self.start + len(self.points))


@dataclass(frozen=True)
class Questions:
    """m questions of at least one point each.

    points: of all questions, those of the first one first. counts: int64 (m,), the number of each one's points. of,
    out: int64 (p,), rows that are left out: question `of[i]` does not get row `out[i]`.
    """

    points: VectorSet
    counts: Rows
    how: Combination
    of: Rows
    out: Rows

    @classmethod
    def single(cls, points: VectorSet, itself: Rows) -> "Questions":
        """A question for each point, which does not get the row in `itself`, int64 (m,), unless this is NONE."""
        of = np.flatnonzero(itself != NONE)
        return cls(points, np.ones(len(points), np.int64), "any", of, itself[of])

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def firsts(self) -> Rows:
        """The first point of each question, int64 (m,)."""
        return np.cumsum(self.counts) - self.counts

    @property
    def joint(self) -> bool:
        """Whether any question has several points."""
        return len(self.points) != len(self)

    def part(self, some: slice) -> "Questions":
        """Some of the questions, consecutive ones."""
        firsts = np.append(self.firsts, len(self.points))
        inside = (self.of >= some.start) & (self.of < some.stop)
        return Questions(
            self.points.part(slice(int(firsts[some.start]), int(firsts[min(some.stop, len(self))]))),
            self.counts[some],
            self.how,
            self.of[inside] - some.start,
            self.out[inside],
        )

    def combined(self, numbers: Distances) -> Distances:
        """Of numbers for points, (points, …) in order, those for questions: the smallest or the largest of each."""
        if not self.joint:
            return numbers
        reduce = np.minimum if self.how == "any" else np.maximum
        reduced: Distances = reduce.reduceat(numbers, self.firsts, axis=0)
        return reduced


def nearest(parts: Sequence[Part], questions: Questions, k: int, admitted: Mask | None = None) -> TopK:
    """The k nearest rows to each question: by distance, then by row.

    parts: of the whole library, in order. admitted: bool (library,), the rows that may be neighbours; None for all.
    Returns min(k, rows admitted) columns.
    """
    count = parts[-1].rows.stop if admitted is None else int(np.count_nonzero(admitted))
    found = empty(len(questions), min(k, count))
    if not count or not len(questions):
        return found
    if admitted is not None:
        parts = [part for part in parts if admitted[part.rows].any()]
    width = sum(len(part.points) for part in parts)
    step = max(1, _AT_ONCE * len(questions) // (4 * width * len(questions.points)))
    for start in range(0, len(questions), step):
        some = slice(start, start + step)
        answer = _Search(parts, questions.part(some), admitted).nearest(min(k, count))
        found.distances[some], found.rows[some] = answer.distances, answer.rows
    return found


class _Search:
    """One search for questions few enough that the bounds of all rows fit into memory."""

    def __init__(self, parts: Sequence[Part], questions: Questions, admitted: Mask | None) -> None:
        self._parts = parts
        self._starts = np.array([part.start for part in parts])
        self._questions = questions
        self._admitted = admitted

    def nearest(self, k: int) -> TopK:
        bounds = in_threads(self._bounds, self._parts)
        found = self._likely(bounds, k)
        limits = self._questions.points.at_most(found.distances[:, -1])
        work = partial(self._others, found, limits)
        more = in_threads(work, list(zip(self._parts, bounds, strict=True)))
        question, row, distance = (np.concatenate(each) for each in zip(*more, strict=True))
        return merge(found, question, distance, row)

    def _bounds(self, part: Part) -> Bounds:
        """The bounds of a part's rows for each question; infinite for rows that are not admitted or left out."""
        found = part.bounding.bounds(self._questions.points.prepared)
        offset = found.offset - UNIT_ROUNDING if self._questions.points.metric == "cosine" else found.offset
        found = Bounds(found.numbers, found.factor, offset)
        if self._questions.joint:
            squares = np.nextafter(found.squares(found.numbers).astype(np.float32), np.float32(-np.inf))
            squares[:, len(part.points) :] = np.inf
            count = len(self._questions)
            found = Bounds(self._questions.combined(squares), np.ones(count), np.zeros(count))
        if self._admitted is not None:
            found.numbers[:, np.flatnonzero(~self._admitted[part.rows])] = np.inf
        of, place = self._within(part, self._questions.of, self._questions.out)
        found.numbers[of, place] = np.inf
        return found

    def _likely(self, bounds: Sequence[Bounds], k: int) -> TopK:
        """The k rows with the least distances by a closer look at those with the least bounds."""
        count = k + _EXTRA
        some = in_threads(partial(_least, count), list(zip(self._parts, bounds, strict=True)))
        squares, rows = (np.concatenate(each, axis=1) for each in zip(*some, strict=True))
        squares, rows = smallest(squares, rows, count)
        question, column = np.nonzero(rows != NONE)
        closer = np.full(rows.shape, np.inf, np.float32)
        closer[question, column] = self._measured(VectorSet.lower_bounds, question, rows[question, column])
        _, rows = smallest(closer, rows, k)
        question, column = np.nonzero(rows != NONE)
        row = rows[question, column]
        distances = self._measured(VectorSet.distances, question, row)
        return merge(empty(len(rows), k), question, distances, row)

    def _others(self, found: TopK, limits: Floats, each: tuple[Part, Bounds]) -> tuple[Rows, Rows, Distances]:
        """All further pairs of a question and a row of the part that may be among the nearest, with their distances."""
        part, bounds = each
        numbers = bounds.numbers[:, : len(part.points)]
        question, column = np.nonzero(found.rows != NONE)
        of, place = self._within(part, question, found.rows[question, column])
        numbers[of, place] = np.inf
        with np.errstate(over="ignore"):
            most = np.nextafter(((limits - bounds.offset) / bounds.factor).astype(np.float32), np.float32(np.inf))
        question, place = np.nonzero(numbers <= np.minimum(most, np.finfo(np.float32).max)[:, None])
        row, worst = place + part.start, found.distances[question, -1]
        near = ~(self._measured(VectorSet.lower_bounds, question, row) > worst)
        question, row = question[near], row[near]
        return question, row, self._measured(VectorSet.distances, question, row)

    def _within(self, part: Part, question: Rows, row: Rows) -> tuple[Rows, Rows]:
        """The pairs whose row lies in the part, with its place there."""
        inside = (row >= part.rows.start) & (row < part.rows.stop)
        return question[inside], row[inside] - part.start

    def _measured(self, measure: Measure, question: Rows, row: Rows) -> Distances:
        """The distances of pairs of a question and a row, or lower bounds of these."""
        return measured(measure, self._questions, self._parts, question, row)


def measured(measure: Measure, questions: Questions, parts: Sequence[Part], question: Rows, row: Rows) -> Distances:
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


def _of_points(measure: Measure, points: VectorSet, parts: Sequence[Part], point: Rows, row: Rows) -> Distances:
    found = np.empty(len(row), np.float32)
    at = np.searchsorted([part.start for part in parts], row, side="right") - 1
    for each in np.unique(at).tolist():
        chosen = np.flatnonzero(at == each)
        with others_turn():
            found[chosen] = measure(points, point[chosen], parts[each].points, row[chosen] - parts[each].start)
    return found


def _least(count: int, each: tuple[Part, Bounds]) -> tuple[Floats, Rows]:
    """The lower bounds of the part's `count` rows with the least, or of all, and these rows; NONE for infinite ones."""
    part, bounds = each
    step = max(1, _IN_CACHE // (4 * bounds.numbers.shape[1]))
    chunks = [least(bounds.numbers[start : start + step], count) for start in range(0, len(bounds.numbers), step)]
    numbers, columns = (np.concatenate(each) for each in zip(*chunks, strict=True))
    return bounds.squares(numbers), np.where(np.isposinf(numbers), NONE, columns + part.start)
