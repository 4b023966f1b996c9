"""The exact search for few queries at a time, in a library of several parts: from lower bounds of all distances.

The k rows with the least bounds are compared, and then every row whose bound does not exceed the worst of these
distances: nothing is guessed, so nothing is asked twice. The same holds for the pictures that a filter admits, and for
several points asked together, whose bounds combine as their distances do. `VectorSet.distances` alone counts, as in
`Certified`. Knows no files and no pictures.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from stages.knn.backend import Distances, Floats, Mask, PreparedQueries, Rows
from stages.knn.blas_threads import cores, in_threads
from stages.knn.joint_queries import DistanceMeasure, JointQueries, LibraryPart, gathered, pair_distances, points_at
from stages.knn.searcher_factory import open_bounding
from stages.knn.top_k import NONE, TopK, empty, least, merge, room, smallest, stacked
from stages.knn.vector_set import UNIT_ROUNDING, VectorSet

_EXTRA = 28
"""Rows beyond k whose distances are looked at before all others."""

_AT_ONCE = 32 << 20
"""Bytes of bounds in memory at once."""

_IN_CACHE = 1 << 19
"""Bytes of bounds that are searched at once, which stay in a core's second-level cache."""

_FEWEST = 8
"""The fewest questions for which it pays to search the bounds in a thread of their own."""


_FEW = 16
"""Rows that are admitted are put together if they are fewer than this share of all: 1 in so many. Reading their vectors
then costs less than bounding the distances of all rows, even from a copy in 8 bits."""

_TOGETHER = 128 << 20
"""Bytes of vectors that are put together."""

_ASKED = 4
"""Points of questions that are compared with each row by itself."""


@dataclass(frozen=True)
class _Bounds:
    """The bounds of all distances in one matrix: the squared distance of question i and the row that has column j is at
    least factor[i] × numbers[i, j] + offset[i]. Infinite where there is no such row."""

    numbers: Distances
    factor: Floats
    offset: Floats

    def part(self, some: slice) -> "_Bounds":
        """Those of some questions."""
        return _Bounds(self.numbers[some], self.factor[some], self.offset[some])

    def at_most(self, limits: Floats) -> Mask:
        """The bounds that do not exceed a limit for each question, and a few that hardly do."""
        with np.errstate(over="ignore"):
            most = np.nextafter(((limits - self.offset) / self.factor).astype(np.float32), np.float32(np.inf))
        found: Mask = self.numbers <= np.minimum(most, np.finfo(np.float32).max)[:, None]
        return found


def nearest(parts: Sequence[LibraryPart], questions: JointQueries, k: int, admitted: Mask | None = None) -> TopK:
    """The k nearest rows to each question: by distance, then by row.

    parts: of the whole library, in order. admitted: bool (library,), the rows that may be neighbours; None for all.
    Returns min(k, rows admitted) columns.
    """
    count = parts[-1].rows.stop if admitted is None else int(np.count_nonzero(admitted))
    k = min(k, count)
    if not k or not len(questions):
        return empty(len(questions), k)
    if admitted is not None:
        parts = [part for part in parts if admitted[part.rows].any()]
        questions = questions.leaving_out(admitted[questions.out])
        if count * _FEW <= len(admitted) and 4 * count * questions.points.dimension <= _TOGETHER:
            return _among(parts, questions, k, np.flatnonzero(admitted))
    width = sum(len(part.points) for part in parts)
    step = max(1, _AT_ONCE * len(questions) // (4 * width * len(questions.points)))
    blocks = (questions.part(slice(start, start + step)) for start in range(0, len(questions), step))
    return stacked(_Search(parts, some, admitted).nearest(k) for some in blocks)


def _among(parts: Sequence[LibraryPart], questions: JointQueries, k: int, rows: Rows) -> TopK:
    """The nearest of some rows, ascending. The vectors of a few questions are compared with those of the rows where
    these lie, in a core's cache; for more of them the rows are put together. No thread is started that others might
    hold up."""
    if len(questions.points) <= _ASKED:
        return stacked(_compared(parts, questions.part(slice(at, at + 1)), k, rows) for at in range(len(questions)))
    points = points_at(parts, rows)
    part = LibraryPart(0, points, open_bounding(points.prepared))
    found = nearest([part], replace(questions, out=np.searchsorted(rows, questions.out)), k)
    return TopK(found.distances, np.where(found.rows == NONE, NONE, rows[found.rows]))


def _compared(parts: Sequence[LibraryPart], question: JointQueries, k: int, rows: Rows) -> TopK:
    """The nearest of some rows to one question, by lower bounds of all their distances."""
    rows = np.setdiff1d(rows, question.out, assume_unique=True)

    def measured(measure: DistanceMeasure, some: Rows) -> Distances:
        return pair_distances(measure, question, parts, np.zeros(len(some), np.int64), some)

    bounds = measured(VectorSet.lower_bounds, rows)
    likely = np.zeros(len(rows), np.bool_)
    likely[np.argpartition(bounds, min(k, len(rows)) - 1)[:k] if len(rows) else []] = True
    found = _merged(empty(1, k), rows[likely], measured)
    near = ~likely & ~(bounds > found.distances[0, -1])
    return _merged(found, rows[near], measured)


def _merged(found: TopK, rows: Rows, measured: Callable[[DistanceMeasure, Rows], Distances]) -> TopK:
    """The answer to one question with further rows."""
    return merge(found, np.zeros(len(rows), np.int64), measured(VectorSet.distances, rows), rows)


class _Search:
    """One search for questions few enough that the bounds of all rows fit into memory, as one matrix: each part has
    columns of its own."""

    def __init__(self, parts: Sequence[LibraryPart], questions: JointQueries, admitted: Mask | None) -> None:
        self._parts = parts
        self._starts: Rows = np.array([part.start for part in parts])
        self._columns: Rows = np.cumsum([0, *(room(len(part.points)) for part in parts)])
        self._questions = questions
        self._admitted = admitted

    def nearest(self, k: int) -> TopK:
        bounds = self._bounds()
        count = len(self._questions)
        size = max(_FEWEST, -(-count // cores()))
        blocks = [slice(start, start + size) for start in range(0, count, size)]
        return stacked(in_threads(partial(self._block, bounds, k), blocks))

    def _bounds(self) -> _Bounds:
        """The bounds of all rows for each question; infinite for rows that are not admitted, left out, or none."""
        points = self._questions.points
        asked: dict[int, PreparedQueries] = {}
        for part in self._parts:
            key = id(part.bounding.scheme)
            if key not in asked:
                asked[key] = part.bounding.ask(points.prepared)
        first = asked[id(self._parts[0].bounding.scheme)]
        numbers = np.empty((len(self._questions), int(self._columns[-1])), np.float32)

        def fill(some: Sequence[int]) -> None:
            for at in some:
                self._fill(numbers, at, asked[id(self._parts[at].bounding.scheme)], first)

        shares = max(1, min(cores(), len(self._parts)))
        in_threads(fill, [range(share, len(self._parts), shares) for share in range(shares)])
        numbers[self._questions.of, self._column(self._questions.out)] = np.inf
        if self._questions.joint:
            return _Bounds(numbers, np.ones(len(numbers)), np.zeros(len(numbers)))
        return _Bounds(numbers, first.factor, first.offset - self._rounding)

    @property
    def _rounding(self) -> float:
        return UNIT_ROUNDING if self._questions.points.metric == "cosine" else 0.0

    def _fill(self, numbers: Distances, at: int, asked: PreparedQueries, first: PreparedQueries) -> None:
        """Fills the columns of a part."""
        part = self._parts[at]
        mine = numbers[:, self._columns[at] : self._columns[at + 1]]
        count = len(part.points)
        found = part.bounding.bounds(asked)
        if self._questions.joint:
            mine[:, :count] = _down(self._questions.combined(asked.squares(found) - self._rounding))
        elif asked is first:
            mine[:, :count] = found
        else:
            mine[:, :count] = _down((asked.squares(found) - first.offset[:, None]) / first.factor[:, None])
        mine[:, count:] = np.inf
        if self._admitted is not None:
            mine[:, np.flatnonzero(~self._admitted[part.rows])] = np.inf

    def _block(self, bounds: _Bounds, k: int, some: slice) -> TopK:
        """The answer to some of the questions."""
        mine, questions = bounds.part(some), self._questions.part(some)
        found = self._likely(mine, questions, k)
        question, place = np.nonzero(found.rows != NONE)
        mine.numbers[question, self._column(found.rows[question, place])] = np.inf
        question, column = np.nonzero(mine.at_most(questions.points.at_most(found.distances[:, -1])))
        row, worst = self._row(column), found.distances[question, -1]
        parts, there = gathered(self._parts, row)
        near = ~(pair_distances(VectorSet.lower_bounds, questions, parts, question, there) > worst)
        distances = pair_distances(VectorSet.distances, questions, parts, question[near], there[near])
        return merge(found, question[near], distances, row[near])

    def _likely(self, bounds: _Bounds, questions: JointQueries, k: int) -> TopK:
        """The k rows with the least distances by a closer look at those with the least bounds."""
        count = min(k + _EXTRA, bounds.numbers.shape[1])
        step = max(1, _IN_CACHE // (4 * bounds.numbers.shape[1]))
        some = [least(bounds.numbers[start : start + step], count) for start in range(0, len(questions), step)]
        numbers, columns = (np.concatenate(each) for each in zip(*some, strict=True))
        question, place = np.nonzero(~np.isposinf(numbers))
        row = self._row(columns[question, place])
        parts, there = gathered(self._parts, row)
        closer, pairs = np.full(columns.shape, np.inf, np.float32), np.full(columns.shape, NONE, np.int64)
        closer[question, place] = pair_distances(VectorSet.lower_bounds, questions, parts, question, there)
        pairs[question, place] = np.arange(len(row))
        _, pairs = smallest(closer, pairs, k)
        chosen = pairs[pairs != NONE]
        distances = pair_distances(VectorSet.distances, questions, parts, question[chosen], there[chosen])
        return merge(empty(len(pairs), k), question[chosen], distances, row[chosen])

    def _row(self, column: Rows) -> Rows:
        """The rows of columns that have one."""
        at = np.searchsorted(self._columns, column, side="right") - 1
        row: Rows = column - self._columns[at] + self._starts[at]
        return row

    def _column(self, row: Rows) -> Rows:
        """The columns of rows of these parts."""
        at = np.searchsorted(self._starts, row, side="right") - 1
        column: Rows = row - self._starts[at] + self._columns[at]
        return column


def _down(squares: Floats) -> Distances:
    """As float32, rounded down."""
    down: Distances = np.nextafter(squares.astype(np.float32), np.float32(-np.inf))
    return down
